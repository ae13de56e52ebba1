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

//! Names of users from PostgreSQL: one query per row, over one connection that all calls share. One file in Arroyo's format;
//! its `pub` function is the UDF.
//!
//! USERS_DB is the address of the database, "postgresql://USER@HOST/DATABASE", with the table users(id bigint, name text).

use async_trait::async_trait;
use std::sync::{Arc, OnceLock};
use tokio_postgres::{Client, Error, NoTls};

/// The connection: opened before the first row, closed after the last. It carries many queries at a time.
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
        // Transports queries and answers; ends with the client.
        tokio::spawn(connection);
        self.client.set(client).expect("init is called once");
    }
}

/// The name of a user; "Unknown-7" if user 7 does not exist or has no name.
pub async fn user_name(context: Arc<Context>, id: i64) -> Result<String, String> {
    let client = context.client.get().expect("init has set it");
    let row = client.query_opt("SELECT name FROM users WHERE id = $1", &[&id]).await.map_err(text)?;
    let name = row.and_then(|row| row.get::<_, Option<String>>("name"));
    Ok(name.unwrap_or_else(|| format!("Unknown-{id}")))
}

/// The server's message: the text of the row's error.
fn text(error: Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}
