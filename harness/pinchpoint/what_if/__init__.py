"""What would another disk, machine or load do: answered from one run, before anything is bought."""

from pinchpoint.what_if.other import predict_beside, predict_other
from pinchpoint.what_if.predict import predict
from pinchpoint.what_if.prediction import SCHEMA, Prediction
from pinchpoint.what_if.settings import Setting, read_settings

__all__ = [
    "SCHEMA",
    "Prediction",
    "Setting",
    "predict",
    "predict_beside",
    "predict_other",
    "read_settings",
]
