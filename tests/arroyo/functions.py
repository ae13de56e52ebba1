"""The functions of these tests, in Python and in Rust. Each becomes a plugin of its own: Arroyo's interface has one
function. Those on the published crates are in `published/plugins`, under the same names."""

PYTHON = {
    "add_one": """
        @udf
        def add_one(x: int) -> int:
            return x + 1
    """,
    "str_len": """
        @udf
        def str_len(text: str) -> int:
            return len(text)
    """,
    "maybe": """
        @udf
        def maybe(x: int | None, text: str) -> str | None:
            return None if x is None else f"{text} {x}"
    """,
    "refuses": """
        @udf
        def refuses(x: int) -> int:
            if x == 3:
                raise ValueError("three")
            return x
    """,
    "at_once": """
        @udf
        async def at_once(x: int) -> int:
            return x + 1
    """,
    "echo": """
        @udf
        async def echo(x: int | None, text: str) -> str | None:
            await asyncio.sleep(0.0005)
            return None if x is None else f"{text} {x}"
    """,
    "waits": """
        @udf(max_attempts=1)
        async def waits(x: int) -> int:
            if x % 4 == 1:
                await asyncio.Event().wait()
            return x
    """,
    "never": """
        @udf
        async def never(x: int) -> int:
            await asyncio.Event().wait()
            return x
    """,
    "panics": """
        @udf
        async def panics(x: int) -> int:
            if x == 3:
                raise ValueError("three")
            return x
    """,
    "blocks": """
        @udf(blocking=True)
        def blocks(x: int) -> int:
            return x + 1
    """,
    "heavy": """
        import numpy as np
        import pyarrow as pa

        @udf
        async def heavy(x: int) -> int:
            return int(np.int64(pa.scalar(x).as_py()) + 1)
    """,
    "late": """
        class Context:
            async def init(self) -> None:
                raise RuntimeError("no database")

        @udf
        async def late(context: Context, x: int) -> int:
            return x
    """,
}
RUST = {
    "add_one": """
        #[udf]
        fn add_one(x: i64) -> i64 {
            x + 1
        }
    """,
    "str_len": """
        #[udf]
        fn str_len(text: &str) -> i64 {
            text.len() as i64
        }
    """,
    "maybe": """
        #[udf]
        fn maybe(x: Option<i64>, text: String) -> Option<String> {
            x.map(|x| format!("{text} {x}"))
        }
    """,
    "refuses": """
        #[udf]
        fn refuses(x: i64) -> i64 {
            if x == 3 {
                panic!("three");
            }
            x
        }
    """,
    "at_once": """
        #[udf(unordered, timeout = "10s", allowed_in_flight = 1000)]
        async fn at_once(x: i64) -> i64 {
            x + 1
        }
    """,
    "echo": """
        #[udf]
        async fn echo(x: Option<i64>, text: String) -> Option<String> {
            arroyo_udf_plugin::tokio::time::sleep(std::time::Duration::from_micros(500)).await;
            x.map(|x| format!("{text} {x}"))
        }
    """,
    "waits": """
        #[udf(max_attempts = 1)]
        async fn waits(x: i64) -> i64 {
            if x % 4 == 1 {
                std::future::pending::<()>().await;
            }
            x
        }
    """,
    "never": """
        #[udf]
        async fn never(x: i64) -> i64 {
            std::future::pending::<()>().await;
            x
        }
    """,
    "panics": """
        #[udf]
        async fn panics(x: i64) -> i64 {
            if x == 3 {
                panic!("three");
            }
            x
        }
    """,
    "blocks": """
        #[udf(blocking)]
        fn blocks(x: i64) -> i64 {
            x + 1
        }
    """,
}
HEADS = {"python": "import asyncio\nfrom arroyo_udf_plugin import udf\n", "rust": "use arroyo_udf_plugin::udf;\n"}
SUFFIXES = {"python": ".py", "rust": ".rs"}
SEVERAL = {
    "python": """
        @udf
        def first(x: int) -> int:
            return x

        @udf
        async def second(x: int) -> int:
            return -x
    """,
    "rust": """
        #[udf]
        fn first(x: i64) -> i64 {
            x
        }

        #[udf]
        async fn second(x: i64) -> i64 {
            -x
        }
    """,
}
