# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Times and sizes of requests, compiled: the twin of `request_runs_pure.py`, which says what everything means."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from ottla.kernel import request_runs_pure
from ottla.kernel.request_runs_pure import Taken

cdef extern from "Python.h":
    bint PyMemoryView_Check(object)
    Py_buffer* PyMemoryView_GET_BUFFER(object)
    Py_ssize_t PyBytes_GET_SIZE(object)

cdef enum:
    VERSIONS = 32

assert VERSIONS == request_runs_pure.VERSIONS


cdef struct Histogram:
    int64_t* counts
    double sum


cdef class Times:
    cdef double* _bounds
    cdef Py_ssize_t _size
    cdef int64_t[VERSIONS] _versions
    cdef int64_t _request_bytes, _answer_bytes
    # All their buckets lie behind one another.
    cdef int64_t* _counts
    cdef Histogram _total, _queue, _local

    def __cinit__(self, bounds):
        cdef Py_ssize_t place
        self._size = len(bounds)
        self._bounds = <double*>PyMem_Calloc(self._size + 1, sizeof(double))
        self._counts = <int64_t*>PyMem_Calloc(3 * (self._size + 1), sizeof(int64_t))
        if self._bounds == NULL or self._counts == NULL:
            raise MemoryError()
        for place, bound in enumerate(bounds):
            self._bounds[place] = bound
        self._total.counts = self._counts
        self._queue.counts = self._counts + self._size + 1
        self._local.counts = self._counts + 2 * (self._size + 1)

    def __dealloc__(self):
        PyMem_Free(self._bounds)
        PyMem_Free(self._counts)

    cdef inline void _put(self, Histogram* histogram, double value, int64_t count) noexcept:
        cdef Py_ssize_t place = 0
        while place < self._size and self._bounds[place] < value:
            place += 1
        histogram.counts[place] += count

    cdef inline void _add_times(self, double total_s, double local_s, int64_t count) noexcept:
        cdef double share_s = local_s / count
        self._put(&self._total, total_s, count)
        self._put(&self._queue, total_s - share_s, count)
        self._put(&self._local, share_s, count)
        self._total.sum += total_s * count
        self._queue.sum += total_s * count - local_s
        self._local.sum += local_s

    def add(self, double queue_s, double local_s, int64_t request_bytes, int64_t answer_bytes, unsigned int version):
        self._versions[version % VERSIONS] += 1
        self._add_times(queue_s + local_s, local_s, 1)
        self._request_bytes += request_bytes
        self._answer_bytes += answer_bytes

    cdef list _buckets(self, Histogram* histogram):
        return [histogram.counts[place] for place in range(self._size + 1)]

    def take(self):
        taken = Taken(
            [self._versions[version] for version in range(VERSIONS)],
            self._request_bytes,
            self._answer_bytes,
            (self._buckets(&self._total), self._total.sum),
            (self._buckets(&self._queue), self._queue.sum),
            (self._buckets(&self._local), self._local.sum),
        )
        memset(self._versions, 0, sizeof(self._versions))
        memset(self._counts, 0, 3 * (self._size + 1) * sizeof(int64_t))
        self._total.sum = self._queue.sum = self._local.sum = 0.0
        self._request_bytes = self._answer_bytes = 0
        return taken


cdef class Run:
    cdef public double last
    cdef Times _times
    cdef object _clock
    cdef double _ready, _began
    cdef int64_t _count, _request_bytes, _answer_bytes

    def __init__(self, Times times not None, clock):
        self._times = times
        self._clock = clock

    def note(self, connection, frame, bytes answer not None):
        cdef Py_buffer* view = _view(frame)
        if not self._count:
            poller = connection.poller
            self._begin(poller)
            poller.holding.append(self)
        self._count += 1
        self._request_bytes += view.len
        self._answer_bytes += PyBytes_GET_SIZE(answer)
        self._times._versions[(<uint8_t*>view.buf)[3] % VERSIONS] += 1

    cdef int _begin(self, poller) except -1:
        self._ready = poller.turn_began
        self._began = max(self.last, self._ready)
        return 0

    def promised(self, connection, frame):
        cdef Py_buffer* view = _view(frame)
        if not self._count:
            self._begin(connection.poller)
        cdef double ended = self._clock()
        cdef double local_s = (ended - self._began) / (self._count + 1)
        self.last = ended
        self._began += local_s
        self._times._versions[(<uint8_t*>view.buf)[3] % VERSIONS] += 1
        self._times._request_bytes += view.len
        self._end(ended)
        return ended - self._ready - local_s, local_s, ended

    def end(self):
        if self._count:
            self.last = self._clock()
            self._end(self.last)

    def release_held(self):
        if self._count:
            self.last = self._clock()
            self._end(self.last)

    cdef inline void _end(self, double ended) noexcept:
        if self._count:
            self._times._add_times(ended - self._ready, ended - self._began, self._count)
            self._times._request_bytes += self._request_bytes
            self._times._answer_bytes += self._answer_bytes
        self._count = self._request_bytes = self._answer_bytes = 0


cdef Py_buffer* _view(frame) except NULL:
    """A request has a key and a version: four bytes."""
    if not PyMemoryView_Check(frame):
        raise TypeError("a request is a memoryview")
    cdef Py_buffer* view = PyMemoryView_GET_BUFFER(frame)
    if view.len < 4 or view.itemsize != 1 or view.ndim != 1:
        raise ValueError("a request has four bytes at least")
    return view
