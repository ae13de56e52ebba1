/*
[dependencies]
async-trait = "0.1"
tokio = { version = "1", features = ["rt"] }
tokio-postgres = "0.7"

[udfs]
async_results_ordered = true
async_max_concurrency = 100
async_timeout_seconds = 10
*/

//! Names of users, looked up in PostgreSQL: one query per row, over one connection that all calls share, in Arroyo's format
//! of one file. Its `pub` function is the UDF.
//!
//! USERS_DB is the database's address, "postgresql://USER@HOST/DATABASE"; its table is users(id bigint, name text).

use async_trait::async_trait;
use std::sync::{Arc, OnceLock};
use tokio_postgres::{Client, Error, NoTls};

/// The connection: opened before the first row, closed after the last. It takes many queries at a time.
pub struct Context {
    client: OnceLock<Client>,
}

impl Context {
    pub fn new() -> Self {
        Context { client: OnceLock::new() }
    }
}

#[async_trait]
impl types::UdfContext for Context {
    async fn init(&self) {
        let address = std::env::var("USERS_DB")
            .expect("USERS_DB is not set: name the database, as in postgresql://USER@HOST/DATABASE");
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.expect("the database answers");
        // Carries the queries to and fro; it ends with the client.
        tokio::spawn(connection);
        self.client.set(client).expect("init is called once");
    }
}

/// The name of a user; "Unknown-7" where there is no user 7, or one without a name.
pub async fn user_name(context: Arc<Context>, id: i64) -> Result<String, String> {
    let client = context.client.get().expect("init has set it");
    let row = client.query_opt("SELECT name FROM users WHERE id = $1", &[&id]).await.map_err(text)?;
    let name = row.and_then(|row| row.get::<_, Option<String>>("name"));
    Ok(name.unwrap_or_else(|| format!("Unknown-{id}")))
}

/// What the server says is wrong; a row's error has this text.
fn text(error: Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}
