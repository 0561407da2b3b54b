//! Types of functions, held against those of tokio.

/// That a method is a function of this type.
macro_rules! signatures {
    ($($method:path: $type:ty;)*) => { $(let _: $type = $method;)* };
}
