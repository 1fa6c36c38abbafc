"""Predicts, from one run, the throughput after a change of disk, machine or load."""

from pinchpoint.forecast.other import predict_beside
from pinchpoint.forecast.predict import predict
from pinchpoint.forecast.prediction import SCHEMA, Prediction
from pinchpoint.forecast.settings import Setting, read_settings

__all__ = [
    "SCHEMA",
    "Prediction",
    "Setting",
    "predict",
    "predict_beside",
    "read_settings",
]
