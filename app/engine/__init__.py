"""The inference engine: token ids and tensors. It knows neither text pages nor HTTP."""

from app.engine.calculator import use_calculator
from app.engine.generation import Engine
from app.engine.kv_cache import KVCache
from app.engine.sampling import sample_next_token
from app.engine.worker import EngineWorker

__all__ = ["Engine", "EngineWorker", "KVCache", "sample_next_token", "use_calculator"]
