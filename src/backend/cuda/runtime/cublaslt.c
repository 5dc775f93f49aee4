// SPDX-License-Identifier: MIT
// Products of bf16 matrices by cuBLASLt.
#include "backend/cuda/runtime/cublaslt.h"
#include "base/buf.h"

static const char *const library_names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "cublasLt64_13.dll",
                                            "cublasLt64_12.dll"};

enum { R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, TRANS_A = 3, OP_T = 1, MAX_WORKSPACE = 1 };

static frit_library *open_in(const char *folder, const char *name)
{
    frit_buf path = {0};
    if (folder) frit_buf_printf(&path, "%s/", folder);
    frit_buf_text(&path, name);
    frit_library *library = path.failed ? NULL : frit_library_open(path.data);
    frit_buf_free(&path);
    return library;
}

static frit_status check_result(int result, const char *what)
{
    return result == 0 ? FRIT_OK : frit_fail(FRIT_E_UNSUPPORTED, "cuBLASLt: %s: error %d", what, result);
}

static frit_status start(frit_cublaslt *blas)
{
#define CUBLASLT(member, symbol, parameters)                                                                      \
    {                                                                                                             \
        void *const found = frit_library_find(blas->library, #symbol);                                            \
        if (!found)                                                                                               \
            return frit_fail(FRIT_E_UNSUPPORTED, "cuBLASLt has no function %s; expected 12.0 or newer", #symbol); \
        memcpy(&blas->member, &found, sizeof found);                                                              \
    }
#include "backend/cuda/runtime/cublaslt.def"
#undef CUBLASLT
    return check_result(blas->create(&blas->handle), "starting");
}

frit_status frit_cublaslt_open(frit_cublaslt *blas, const char *folder)
{
    *blas = (frit_cublaslt){0};
    for (size_t i = 0; i < FRIT_COUNT(library_names) && !blas->library; i++)
        blas->library = open_in(folder, library_names[i]);
    if (!blas->library)
        return frit_fail(FRIT_E_NOT_FOUND,
                         "%s%scuBLASLt (libcublasLt.so.13 or .12) cannot be loaded; it is part of the "
                         "CUDA toolkit and of the Python package nvidia-cublas",
                         folder ? folder : "", folder ? ": " : "");
    const frit_status status = start(blas);
    if (status != FRIT_OK) frit_cublaslt_close(blas);
    return status;
}

void frit_cublaslt_close(frit_cublaslt *blas)
{
    if (blas->handle) blas->destroy(blas->handle);
    frit_library_close(blas->library);
    *blas = (frit_cublaslt){0};
}

static frit_status choose(const frit_cublaslt *blas, int which, frit_cublaslt_product *p)
{
    frit_cublaslt_choice choices[FRIT_CUBLASLT_MOST_CHOICES];
    const uint64_t workspace = FRIT_CUBLASLT_WORKSPACE_BYTES;
    frit_cublaslt_object preference;
    int n = 0;
    FRIT_TRY(check_result(blas->preference_create(&preference), "a preference"));
    int result = blas->preference_set(preference, MAX_WORKSPACE, &workspace, sizeof workspace);
    if (result == 0)
        result = blas->find(blas->handle, p->desc, p->weights, p->x, p->y, p->y, preference, which + 1, choices, &n);
    blas->preference_destroy(preference);
    if (result == 0 && n <= which)
        return frit_fail(FRIT_E_UNSUPPORTED, "cuBLASLt has no way to multiply matrices of this shape");
    if (result == 0) p->choice = choices[which];
    return check_result(result, "choosing an algorithm");
}

// cuBLASLt's matrices are column-major: weights are k x n_rows there and transposed, x is k x n_tokens, y is n_rows x
// n_tokens.
static frit_status describe(const frit_cublaslt *blas, const frit_cublaslt_shape *s, frit_cublaslt_product *p)
{
    const int transpose = OP_T, in = s->is_f16 ? R_16F : R_16BF, out = s->is_out_f32 ? R_32F : in;
    const uint64_t n_tokens = (uint64_t)s->n_tokens, n_rows = (uint64_t)s->n_rows, k = (uint64_t)s->k;
    FRIT_TRY(check_result(blas->desc_create(&p->desc, COMPUTE_32F, R_32F), "a product"));
    FRIT_TRY(check_result(blas->desc_set(p->desc, TRANS_A, &transpose, sizeof transpose), "a product"));
    FRIT_TRY(check_result(blas->layout_create(&p->weights, in, k, n_rows, (int64_t)k), "a matrix"));
    FRIT_TRY(check_result(blas->layout_create(&p->x, in, k, n_tokens, (int64_t)k), "a matrix"));
    FRIT_TRY(check_result(blas->layout_create(&p->y, out, n_rows, n_tokens, (int64_t)n_rows), "a matrix"));
    return choose(blas, s->choice, p);
}

frit_status frit_cublaslt_prepare(const frit_cublaslt *blas, const frit_cublaslt_shape *shape,
                                  frit_cublaslt_product *product)
{
    *product = (frit_cublaslt_product){.blas = blas, .adds = shape->adds};
    const frit_status status = describe(blas, shape, product);
    if (status != FRIT_OK) frit_cublaslt_product_free(product);
    return status;
}

frit_status frit_cublaslt_run(const frit_cublaslt_product *p, uint64_t x, uint64_t weights, uint64_t y,
                              uint64_t workspace, frit_cuda_stream stream)
{
    const float one = 1, before = p->adds;
    return check_result(p->blas->multiply(p->blas->handle, p->desc, &one, weights, p->weights, x, p->x, &before, y,
                                          p->y, y, p->y, p->choice.algorithm, workspace, FRIT_CUBLASLT_WORKSPACE_BYTES,
                                          stream),
                        "multiplying");
}

void frit_cublaslt_product_free(frit_cublaslt_product *p)
{
    if (p->desc) p->blas->desc_destroy(p->desc);
    if (p->weights) p->blas->layout_destroy(p->weights);
    if (p->x) p->blas->layout_destroy(p->x);
    if (p->y) p->blas->layout_destroy(p->y);
    *p = (frit_cublaslt_product){0};
}
