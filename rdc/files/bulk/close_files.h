/* close_files.h - closes the files of a column, as a Python function, and for what opens many at once. */
#ifndef RDC_CLOSE_FILES_H
#define RDC_CLOSE_FILES_H

#include "functions.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* `fds`: a buffer of int32, which need not be aligned; negative ones are passed over. Without the interpreter's lock,
 * since the last close of a file that has no name frees its blocks. */
static PyObject *close_files(PyObject *module, PyObject *fds)
{
    Py_buffer view;
    (void)module;

    if (PyObject_GetBuffer(fds, &view, PyBUF_SIMPLE))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < view.len / 4; i++) {
        int32_t fd;
        memcpy(&fd, (const char *)view.buf + 4 * i, sizeof fd);
        if (fd >= 0)
            close(fd);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

#endif
