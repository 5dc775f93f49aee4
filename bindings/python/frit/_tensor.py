# SPDX-License-Identifier: MIT
"""Arrays of the library as views that keep their owner alive, for NumPy, DLPack and plain Python."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Iterator

_DL_CPU, _DL_FLOAT = 1, 2


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_lent: dict[int, tuple[Any, ...]] = {}   # address -> the DLPack struct of a consumer and the objects that it uses


def _forget(address: int) -> None:
    _lent.pop(address, None)


_delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_forget)
_delete_address = ctypes.cast(_delete, ctypes.c_void_p).value


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


# Frees a capsule that was not consumed. A consumer renames the capsule and calls the deleter itself.
def _end(capsule: int) -> None:
    if _is_valid(capsule, b"dltensor"):
        _lent.pop(_get_pointer(capsule, b"dltensor"), None)


_end_capsule = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end)
_end_capsule_address = ctypes.cast(_end_capsule, ctypes.c_void_p)


def _array_at(address: int, shape: tuple[int, ...], owner: Any) -> Any:
    array: Any = (ctypes.c_float * math.prod(shape)).from_address(address)
    array._frit_owner = owner
    return array


class Tensor:
    """An array of float32 with a shape, in memory that lives as long as the tensor and every view of it.

    `numpy.asarray(t)` and `torch.from_dlpack(t)` are views without a copy; `memoryview(t.buffer)`, `t[i]`, `t.tolist()` and
    `len(t)` need no package. Rows of a tensor of two dimensions are tensors.
    """

    __slots__ = ("_address", "_owner", "shape", "buffer")

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...]) -> None:
        self._owner = owner
        self._address = address
        #: The sizes, outermost first.
        self.shape = shape
        #: The numbers as a ctypes array, which supports the buffer protocol and keeps their owner alive.
        self.buffer: Any = _array_at(address, shape, owner)

    @classmethod
    def copy_of(cls, address: Any, shape: tuple[int, ...]) -> Tensor:
        """Copies an array of the library."""
        own = (ctypes.c_float * math.prod(shape))()
        ctypes.memmove(own, address, ctypes.sizeof(own))
        return cls(own, ctypes.addressof(own), shape)

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Tensor:
        own = (ctypes.c_float * math.prod(shape))()
        return cls(own, ctypes.addressof(own), shape)

    @property
    def address(self) -> int:
        """The address of the first number."""
        return self._address

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "typestr": "<f4", "shape": self.shape, "data": (self._address, False)}

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_DL_CPU, 0)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        if dl_device is not None and tuple(dl_device) != (_DL_CPU, 0):
            raise BufferError("the numbers are in the host's memory: dl_device must be (1, 0)")
        source = Tensor.copy_of(self._address, self.shape) if copy else self
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        managed = _DLManagedTensor()
        managed.tensor.data = source._address
        managed.tensor.device_type, managed.tensor.ndim = _DL_CPU, len(self.shape)
        managed.tensor.code, managed.tensor.bits, managed.tensor.lanes = _DL_FLOAT, 32, 1
        managed.tensor.shape = shape
        managed.deleter = _delete_address
        address = ctypes.addressof(managed)
        _lent[address] = (managed, shape, source)
        return _new_capsule(address, b"dltensor", _end_capsule_address)

    def __copy__(self) -> Tensor:
        return Tensor.copy_of(self._address, self.shape)

    def __deepcopy__(self, _memo: Any) -> Tensor:
        return Tensor.copy_of(self._address, self.shape)

    def __reduce__(self) -> Any:
        return _tensor_of, (bytes(memoryview(self.buffer).cast("B")), self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, i: int) -> Any:
        n = self.shape[0]
        if not -n <= i < n:
            raise IndexError(f"index {i}: the tensor has {n} rows")
        i %= n
        if len(self.shape) == 1:
            return self.buffer[i]
        rest = self.shape[1:]
        return Tensor(self, self._address + 4 * i * math.prod(rest), rest)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def tolist(self) -> list[Any]:
        """Returns the numbers as a list, or as a list of lists for two dimensions."""
        return list(self.buffer) if len(self.shape) == 1 else [row.tolist() for row in self]

    def numpy(self) -> Any:
        """Returns a view for NumPy, without a copy. Raises ImportError if NumPy is not installed."""
        import numpy

        return numpy.asarray(self)

    def __repr__(self) -> str:
        return f"<frit.Tensor of float32 {list(self.shape)}>"


def _tensor_of(data: bytes, shape: tuple[int, ...]) -> Tensor:
    return Tensor.copy_of(data, shape)
