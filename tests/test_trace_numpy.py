"""Traced code gives what the same code gives in NumPy: dtype, shape and bits, or the same class of error."""

import warnings

import numpy as np
import pytest

from minigraph.errors import MinigraphError
from minigraph.run_numpy import compile
from minigraph.tracing import trace
from minigraph.types import DTYPES, same_bits
from minigraph.verify import verify

TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}  # for what is summed in another order

# x has 18 elements, special values among them
BITS = """
-x  +x  abs(x)  ~x  np.sign(x)  np.sqrt(x)  np.exp(x)  np.log(x)  np.tanh(x)  np.sin(x)  np.cos(x)  np.floor(x)
np.ceil(x)  np.rint(x)  np.trunc(x)  np.fix(x)  np.fabs(x)  np.square(x)  np.positive(x)  np.isnan(x)  np.isinf(x)
np.isfinite(x)  np.logical_not(x)  np.deg2rad(x)  np.rad2deg(x)  np.degrees(x)  np.radians(x)  np.conj(x)
np.signbit(x[:9])  np.modf(x[:9])  np.copysign(x[:9],-2)  np.copysign(3,x[:9])  np.heaviside(x,0.5)  1/x
np.fmod(x,3)  np.fmod(x,-2)  x**2  x**0.5  x**-1  x**2.0  x**-1.0  x**3  x**0  x**1  x**True  2**x  2.0**x  0.5**x
np.power(x,0.5)  np.power(x,2)  np.int64(3)**x  x**np.int64(2)  x**np.float16(0.5)  x**np.float64(0.5)
x**np.full(18,0.5)  x**np.full(18,2)  x**-2  x+1  x+1.5  1-x  x*2  x*0  x/2  x/0  2/x  x//2  x//0  7//x  x%3  x%-3
x%0  x-(-1)  x*-1  x+300  x+True  x-True  x*True  x<0  x<=1.5  x==1  1==x  x!=300  x<300  x>-1  300>x  x==-1
x>=2**40  x<2**63  x==2**64  x<10**400  x==np.nan  x&1  x|1  x^1  x<<1  x>>1  x<<70  1<<x  x&True  x&-1  x&300
np.left_shift(x,2)  np.right_shift(x,40)  np.invert(x)  x+np.float32(1.5)  x+np.float64(.1)  x*np.int8(3)
x+np.array(2)  x+np.array(2.5,np.float16)  np.float32(2)*x  [1]*18+x  np.float64(2)/x  np.bool_(True)&x  np.True_+x
np.add(x,1,dtype=np.float64)  np.add(x,x,dtype=np.float32)  np.add(x,[1.5]*18)  x+np.arange(18)
x*np.arange(18,dtype=np.uint64)  x<np.arange(18,dtype=np.uint64)  x[0]+1  x[4]*2.5  x==np.arange(18,dtype=np.int64)
np.arange(18,dtype=np.uint64)>=x  np.ones(18,np.float32)-x  x[0]/0  np.subtract.outer(x,x)  np.multiply.outer(x,x)
np.maximum(x,0)  np.minimum(x,0)  np.maximum(0,x)  np.minimum(1.5,x)  np.fmax(x,0)  np.fmin(x,0.0)  np.clip(x,0,6)
np.clip(x,-1,1)  np.clip(x,0.0,np.inf)  np.clip(x,-0.0,6.5)  x.clip(1,None)  x.clip(max=3)  np.clip(x,-300,300)
np.clip(x,3,1)  np.clip(x,np.float64(0),2)  np.clip(x,np.zeros(18,np.float32),np.ones(18,np.float32))
np.clip(x,np.nan,1.0)  np.clip(x,-1.0,np.nan)  np.where(x>0,x,0)  np.where(x>0,x,-1)  np.where(x>0,1,0)
np.where(x,x,1.5)  np.where(x>0,300,x)  np.where(x>0,np.float32(2),x)  np.nan_to_num(x)
np.nan_to_num(x,nan=1.0,posinf=2.0,neginf=-2.0)  np.round(x)  np.round(x,1)  x.round(2)  np.divmod(x,3)  divmod(x,2)
np.logical_and(x,2)  np.logical_or(x,0)  np.logical_xor(x,x>1)  x.astype(np.float16)  x.astype(np.float32)
np.astype(x,np.float64)  x.astype(bool)  np.max(x)  np.min(x)  x.any()  x.all()  np.argmax(x)  np.argmin(x)
np.ptp(x)  np.count_nonzero(x)  np.nanmax(x)  np.nanmin(x[:9])  np.max(x,initial=3)  np.min(x,initial=3)
np.maximum.reduce(x)  np.logical_or.reduce(x)  np.max(x,axis=())  np.diff(x)  np.diff(x,n=2)  np.flip(x)
np.roll(x,3)  np.roll(x,-2)  np.tile(x,2)  np.repeat(x,2)  np.pad(x,2)  np.pad(x,(1,2),constant_values=1)
np.pad(x,3,mode='edge')  np.pad(x,3,mode='reflect')  np.pad(x,3,mode='wrap')  np.zeros_like(x)  np.ones_like(x)
np.full_like(x,2.7)  np.full_like(x,1,dtype=np.float32)  np.append(x,1.5)  np.append(x,np.array([1],np.int8))
np.concatenate([x,[1,2]])  np.stack([x,x])  np.stack([x,x.astype(np.float64)])  np.isclose(x,1.0)
np.isclose(x,x,equal_nan=True)  np.allclose(x,x)  np.array_equal(x,x)  np.array_equal(x,x,equal_nan=True)
np.array_equal(x,x[1:])  np.real(x)  np.imag(x)  np.outer(x,x)  np.einsum('i,j->ij',x,x)  np.diag(x)  np.diag(x,1)
x.T  np.diag(np.outer(x,x),-1)  np.tril(np.outer(x,x))  np.triu(np.outer(x,x),1)  np.take(x,[0,-1,2])
np.take(x,[1,2],mode='wrap')  np.take(x,[100,-100],mode='clip')  np.take(x.reshape(3,6),[1],axis=1)
np.take(x.reshape(3,6),3)  np.delete(x,[0,-1])  np.sort(x[2:9])  np.sort(x[2:8].reshape(3,2),axis=0)
np.sort(x[2:8].reshape(3,2),axis=None)  x.ravel()  x.reshape(-1,2)  x.reshape((2,9),order='F')  x.reshape(3,6).T
x.reshape(3,6).max(axis=-1,keepdims=True)  x.reshape(3,6).argmax(0)  x.reshape(3,6).argmin(axis=1,keepdims=True)
np.argmax(x.reshape(3,6),keepdims=True)  x.reshape(3,6).any(axis=0)  np.moveaxis(x.reshape(2,3,3),0,-1)
np.rollaxis(x.reshape(2,3,3),2)  np.swapaxes(x.reshape(2,3,3),0,2)  x.flatten('F')  np.rot90(x.reshape(3,6))
np.rot90(x.reshape(3,6),3)  np.rot90(x.reshape(3,6),2)  np.fliplr(x.reshape(3,6))  np.flipud(x.reshape(3,6))
np.roll(x.reshape(3,6),(1,2),(0,1))  np.roll(x.reshape(3,6),2)  np.tile(x.reshape(3,6),(2,1,2))
np.repeat(x.reshape(3,6),[1,0,2],axis=0)  np.repeat(x.reshape(3,6),2,axis=1)  np.pad(x.reshape(3,6),((1,0),(0,2)))
np.split(x,3)  np.array_split(x,4)  np.array_split(x,[3,5])  np.hsplit(x.reshape(3,6),2)
np.vsplit(x.reshape(3,6),3)  np.dsplit(x.reshape(3,3,2),2)  np.hstack([x,x])  np.vstack([x,x])  np.dstack([x,x])
np.column_stack([x,x])  np.expand_dims(x,(0,2))  np.squeeze(x[None,:,None])  np.squeeze(x[None,:,None],0)
np.atleast_2d(x)  np.atleast_3d(x)  np.atleast_3d(x.reshape(3,6))  np.atleast_1d(x[0])  np.broadcast_to(x,(2,18))
np.broadcast_arrays(x,x[:,None])  np.take_along_axis(x.reshape(3,6),np.array([[1],[0],[-1]]),axis=1)
np.matrix_transpose(x.reshape(3,6))  x.reshape(3,6).mT  np.diagonal(x.reshape(2,3,3),1,1,2)  np.stack([x,x],axis=-1)
np.concatenate([x.reshape(3,6)]*2,axis=None)  x.take([1])  np.hstack([x.reshape(3,6),np.zeros((3,1),np.float16)])
np.append(x.reshape(3,6),x.reshape(3,6),axis=0)  x.repeat(2)  x.reshape(3,6).transpose(1,0)
x.reshape(2,3,3).transpose((2,0,1))  x.swapaxes(0,0)  x.copy()  np.copy(x)  x.view()  x.real  x.imag  x.conj()
x*x.size  x/x.shape[0]  x.nbytes*x  np.ndim(x)*x  np.size(x)*x  np.shape(x)[0]*x
np.result_type(x,np.float32).type(1)*x  np.iscomplexobj(x)*x  np.can_cast(x.dtype,np.float64)*x
np.asarray(x,like=x)*2  x[5]  x[-1]  x[2:9:3]  x[::-1]  x[20:2:-3]  x[::-1][2:5]  x[3:3]  x[None]  x[...,None]
x[()]  x[[0,-1]]  x[np.array(3)]  x[np.array([[0,1],[2,-3]])]  x[np.arange(18)%2==0]
x.reshape(3,6)[np.eye(3,6,dtype=bool)]  x[0][()]  x[0][None]  x[[]]  x.reshape(3,6)[1:,::-2]
x.reshape(3,6)[[0,2],[1,3]]  x.reshape(3,3,2)[0,:,[1,0,1]]  x.reshape(3,3,2)[[0,1],:,[1,1]]  np.max(x[:0],initial=0)
np.any(x[:0])  np.all(x[:0])  np.concatenate([x[:0],x])  x[:0].reshape(0,5)  x[:0].reshape(3,-1)
np.reshape(x[0],(1,1))  np.transpose(x[0])  x[0].max()  np.squeeze(x[0])  (x>0)+(x<0)  np.maximum(x>0,x<0)
(x>0)*1.5  (x>0)/2  (x>0)**2  (x>0)@(x>0)  np.cumsum(x>0)  np.sum(x>0)  np.mean(x>0)  (x>0)-(x<0)  -(x>0)
np.select([x>1],[x],x)  np.max(x,initial=0,where=x<2)  np.min(x,where=x>2)  np.all(x,where=x>0)  x.any(where=x<0)
np.clip(x,[0],[1])  np.clip(x,x[:1],x[2:3])  np.clip(x[1:2],x[:1],x[2:3])
np.clip(x,None,[2]*18)  x.reshape(3.0,6)  x[18]  x[-19]  x[0,0]  x[1.5]  x.reshape(4,4)  x+np.zeros(7)  x.sum(axis=1)  np.concatenate([x,x[None]])
np.swapaxes(x,0,1)  np.expand_dims(x,5)  np.stack([x,x[:2]])  x@np.ones(3)  x[[99]]  x[[0],[1]]  np.squeeze(x,0)
np.split(x,4)  np.max(x[:0])  np.argmax(x[:0])  np.concatenate([x[0],x[1]])  np.moveaxis(x,0,3)
x.reshape(3,6)[:,:,0]  x.missing  x<<1.5  x['a']
""".split()
ROUNDED = """
np.sum(x,where=x>0)  np.sum(x,axis=0,keepdims=True,where=x>9)  np.prod(x,where=x>1)  np.add.reduce(x,where=x>0)
np.linalg.matmul(x.reshape(3,6),x.reshape(6,3))  np.sum(x)  np.prod(x[:4])  np.mean(x)  np.cumsum(x)  np.var(x)
np.std(x[2:8])  x.var(ddof=1)  np.average(x)  np.nansum(x)  np.average(x[2:5],weights=np.array([1,2,3]))
np.average(x[2:5],weights=np.array([1,2,3],np.float16))  np.nanprod(x[:9])  np.sum(x,dtype=np.float32)
np.sum(x,dtype=np.int64)  np.mean(x,dtype=np.float64)  np.sum(x,initial=3)  np.add.reduce(x)
np.multiply.reduce(x[:3])  np.add.accumulate(x)  np.dot(x[:3],x[:3])  x[2:5]@x[2:5]  np.inner(x[2:5],x[2:5])
np.vdot(x[2:5],x[2:5])  np.einsum('i,i->',x[2:5],x[2:5])  np.trace(np.outer(x,x))  np.linalg.norm(x[2:6])
np.dot(2,x)  x.reshape(3,6).sum(0)  x.reshape(3,6).sum(axis=(0,1))  x.reshape(3,6).mean(1)  x.reshape(3,6).cumsum(1)
x.dot(x)  np.cumsum(x.reshape(3,6))  x.reshape(3,6).std(0)  x.reshape(3,6).prod(1)  np.sum(x,axis=())
np.vecdot(x[2:5],x[2:5])  np.tensordot(x.reshape(3,6)[:,2:4],x.reshape(6,3)[2:4],1)  x.reshape(3,6)[:,2:5]@x[2:5]
x.reshape(2,3,3).trace(0,1,2)  np.einsum('ij,jk->ik',x.reshape(3,6),x.reshape(6,3))
np.einsum('ij->ji',x.reshape(3,6))  np.einsum('ij->i',x.reshape(3,6))
np.einsum('bij,bjk->bik',x.reshape(2,3,3),x.reshape(2,3,3))  np.einsum('ij,kj->',x.reshape(3,6),x.reshape(3,6))
np.einsum('i,ij,j->',x[:3],x.reshape(3,6),x[:6])  np.linalg.norm(x.reshape(3,6),axis=1)  np.linalg.norm(x,1)
np.dot(x.reshape(3,3,2),x.reshape(3,2,3))  np.inner(x.reshape(3,6),x.reshape(3,6))  np.tensordot(x[:2],x[2:4],0)
np.tensordot(x.reshape(2,3,3),x.reshape(3,2,3),([1,0],[0,1]))  np.sum(x[:0])  np.mean(x[:0])  np.prod(x[:0])
x[:0]@x[:0]  (x-x.mean())/np.sqrt(x.var()+1)  np.exp(x-x.max())/np.sum(np.exp(x-x.max()))  x.sum()+x  np.round(x,-1)
np.einsum('ij,ij->ij',x.reshape(3,6),x[None,:6])  np.einsum('ij,jk->ik',x.reshape(3,6),x[None,:4])
np.einsum('ij,jk->ik',x.reshape(3,6),x.reshape(3,6))  np.einsum('i->j',x)  x.astype(np.int16)  x.astype(int).astype(np.int8)  np.linalg.norm(x,np.inf)
""".split()
PAIRS = """
x+y  x-y  x*y  x/y  x//y  x%y  x**y  x==y  x!=y  x<y  x<=y  x>y  x>=y  x&y  x|y  x^y  x<<y  x>>y  np.maximum(x,y)
np.minimum(x,y)  np.fmax(x,y)  np.fmin(x,y)  np.fmod(x,y)  np.logical_and(x,y)  np.heaviside(x,y)  np.divmod(x,y)
np.where(x>y,x,y)  np.where(y,x,y)  np.concatenate([x,y])  np.clip(x,y,x)  np.clip(x,y[1],y[9])  np.isclose(x,y)
np.stack([x,y])  np.outer(x,y)  x+y[3]  x[3]*y  np.minimum(x,y[1])  np.maximum(x[0],y)  x[:,None]<y
np.subtract.outer(x,y)  np.maximum(x[:,None],y)
""".split()

# Before NumPy 2.3 `**` looked at the value of a NumPy scalar or 0-d exponent, before 2.1 clip took no keywords
VERSION = tuple(map(int, np.__version__.split(".")[:2]))
CHANGED = {"x**2.0", "x**np.int64(2)", "x**np.float16(0.5)", "x**np.float64(0.5)"} if VERSION < (2, 3) else set()
CHANGED |= {text for text in BITS + PAIRS if "clip" in text} if VERSION < (2, 1) else set()


def special(dtype: np.dtype) -> np.ndarray:
    """18 values: zeros of both signs, infinities, NaN and the ends of the range among them."""
    if dtype.kind == "f":
        info = np.finfo(dtype)
        return np.array([0.0, -0.0, 1, -1, 2, -2.5, 0.5, -0.5, 1.5, np.nan, np.inf, -np.inf, info.tiny, info.max,
                         -info.max, info.smallest_subnormal, 7.3, 100], dtype)  # fmt: skip
    if dtype.kind == "b":
        return np.array([True, False] * 9)
    top, bottom = np.iinfo(dtype).max, np.iinfo(dtype).min
    return np.array([0, 1, 2, 3, 5, 7, 0, 0, 0, 0, 10, 15, 25, 31, 33, 4, 6, 100], dtype) + np.array(
        [0] * 6 + [top, bottom, top - 1, bottom + 1] + [0] * 8, dtype)


def tame(dtype: np.dtype) -> np.ndarray:
    """Small numbers, whose sums do not overflow."""
    return ((np.arange(18) * 7 % 5) - 2 * (dtype.kind in "if")).astype(dtype)


def outcome(call):
    """The results as arrays, or the exception."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
        except Exception as error:
            return error
    return [np.asarray(one) for one in (result if isinstance(result, (tuple, list)) else [result])]


def traced(f, **arrays):
    graph = trace(f, **arrays)
    verify(graph)
    return list(compile(graph)(**arrays).values())


def compare(want, got, rounded: bool, about: str) -> None:
    if isinstance(want, Exception):
        classes = (ValueError, TypeError, IndexError, OverflowError, AttributeError)
        assert isinstance(got, MinigraphError), f"{about}: {want!r} in NumPy, but {got!r}"
        assert any(isinstance(want, c) and isinstance(got, c) for c in classes), f"{about}: {want!r}, but {got!r}"
        return
    assert not isinstance(got, Exception), f"{about}: {got!r}"
    assert [(a.dtype, a.shape) for a in got] == [(a.dtype, a.shape) for a in want], about
    for a, b in zip(want, got):
        near = rounded and np.allclose(a, b, rtol=TOLERANCE.get(a.dtype.name, 0), atol=0, equal_nan=True)
        assert near or same_bits(a, b), f"{about}: {b}, but in NumPy {a}"


@pytest.mark.parametrize("text", [text for text in BITS if text not in CHANGED])
def test_same_bits(text):
    f = eval(f"lambda x: {text}")
    for short, dtype in DTYPES.items():
        x = special(dtype)
        compare(outcome(lambda: f(x)), outcome(lambda: traced(f, x=x)), False, f"{short} {text}")


@pytest.mark.parametrize("text", ROUNDED)
def test_same_up_to_rounding(text):
    f = eval(f"lambda x: {text}")
    for short, dtype in DTYPES.items():
        x = tame(dtype)
        compare(outcome(lambda: f(x)), outcome(lambda: traced(f, x=x)), True, f"{short} {text}")


@pytest.mark.parametrize("text", [text for text in PAIRS if text not in CHANGED])
def test_every_pair_of_dtypes(text):
    f = eval(f"lambda x, y: {text}")
    for one, a in DTYPES.items():
        for other, b in DTYPES.items():
            x, y = special(a), special(b)[[3, 1, 4, 0, 5, 2, 6, 8, 7, 9, 11, 10, 17, 16, 12, 13, 14, 15]]
            want = outcome(lambda: f(x, y))
            compare(want, outcome(lambda: traced(f, x=x, y=y)), False, f"{one} {other} {text}")
            if a == b:  # as captured arrays
                compare(want, outcome(lambda: traced(lambda x: f(x, y), x=x)), False, f"{one} captured {text}")
                compare(want, outcome(lambda: traced(lambda y: f(x, y), y=y)), False, f"captured {other} {text}")


# ---- indexing ---------------------------------------------------------------------------------------------------------


def random_item(rng, dim: int):
    """An index of one axis: int, slice, index array or mask."""
    ends = [None if rng.random() < 0.4 else int(v) for v in rng.integers(-dim - 2, dim + 2, size=2)]
    return [
        lambda: int(rng.integers(-dim, dim)),
        lambda: slice(*ends, rng.choice([None, -3, -2, -1, 1, 2])),
        lambda: slice(None),
        lambda: rng.integers(-dim, dim, size=3),
        lambda: rng.integers(-dim, dim, size=(2, 1)),
        lambda: rng.integers(-dim, dim, size=3).tolist(),
        lambda: np.array(rng.integers(0, dim), np.int32),
        lambda: rng.random(dim) < 0.5,
    ][rng.integers(8)]()


@pytest.mark.parametrize("seed", range(20))
def test_random_indices(seed):
    """Ints, slices, masks, index arrays, Ellipsis and None, mixed; index arrays also as traced values."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        shape = tuple(int(dim) for dim in rng.integers(1, 4, size=rng.integers(1, 5)))
        index = [random_item(rng, dim) for dim in shape[:rng.integers(0, len(shape) + 1)]]
        if rng.random() < 0.3:
            index.insert(rng.integers(0, len(index) + 1), Ellipsis)
        if rng.random() < 0.5:
            index.insert(rng.integers(0, len(index) + 1), None)
        x = np.arange(np.prod(shape)).reshape(shape)
        arrays = {f"i{place}": item for place, item in enumerate(index)
                  if isinstance(item, np.ndarray) and item.dtype != bool and rng.random() < 0.5}

        def f(x, **given):
            return x[tuple(given.get(f"i{place}", item) for place, item in enumerate(index))]

        want = outcome(lambda: f(x))
        if isinstance(want, list) and want[0].size == 0 and arrays:
            continue  # NumPy may or may not look at an index of which nothing is taken
        compare(want, outcome(lambda: traced(f, x=x)), False, f"{shape}[{index}]")
        if not isinstance(want, Exception):
            compare(want, outcome(lambda: traced(f, x=x, **arrays)), False, f"{shape}[{index}], traced {arrays}")


def test_a_traced_index_is_checked_when_the_graph_runs():
    x = np.arange(6.0).reshape(3, 2)
    for f in (lambda x, i: x[i], lambda x, i: x[0, i], lambda x, i: x[np.arange(3), i], lambda x, i: x[i, i]):
        run = compile(trace(f, x, "i64[3]"))
        with pytest.raises(IndexError):
            run(x=x, i=np.array([0, 1, 3]))
        assert same_bits(run(x=x, i=np.array([0, -1, 1]))["out"], f(x, np.array([0, -1, 1])))
