"""Predicts, from one run, the throughput after a change of disk, machine or load."""

from pinchpoint.analysis.model.prediction import SCHEMA, Prediction
from pinchpoint.analysis.model.settings import Setting, read_settings
from pinchpoint.forecast.other_side import predict_beside
from pinchpoint.forecast.predict import predict

__all__ = [
    "SCHEMA",
    "Prediction",
    "Setting",
    "predict",
    "predict_beside",
    "read_settings",
]
