CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.artifact_uses (
    artifact character varying(64) NOT NULL,
    pipeline_id character varying(200) NOT NULL
);
CREATE TABLE public.artifacts (
    sha256 character varying(64) NOT NULL,
    name text NOT NULL,
    language character varying(8) NOT NULL,
    size bigint NOT NULL,
    created_at bigint NOT NULL,
    place text
);
CREATE TABLE public.checkpoints (
    job_id character varying(200) NOT NULL,
    epoch integer NOT NULL,
    generation integer NOT NULL,
    state character varying(16) NOT NULL,
    checkpoint_type character varying(16) NOT NULL,
    start_time bigint NOT NULL,
    finish_time bigint,
    events json NOT NULL,
    operators json NOT NULL,
    history integer DEFAULT 0 NOT NULL,
    retained boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_checkpoints_checkpoint_type CHECK (((checkpoint_type)::text = ANY ((ARRAY['scheduled'::character varying, 'stopping'::character varying])::text[]))),
    CONSTRAINT ck_checkpoints_state CHECK (((state)::text = ANY ((ARRAY['inprogress'::character varying, 'ready'::character varying, 'failed'::character varying])::text[])))
);
CREATE TABLE public.connection_profiles (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    name text NOT NULL,
    connector text NOT NULL,
    description text NOT NULL,
    config json NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.connection_profiles_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.connection_profiles_serial_seq OWNED BY public.connection_profiles.serial;
CREATE TABLE public.connection_table_uses (
    table_id character varying(200) NOT NULL,
    pipeline_id character varying(200) NOT NULL
);
CREATE TABLE public.connection_tables (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    table_type character varying(8) NOT NULL,
    connector text NOT NULL,
    profile_id character varying(200),
    config json NOT NULL,
    schema json NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT ck_connection_tables_table_type CHECK (((table_type)::text = ANY ((ARRAY['source'::character varying, 'sink'::character varying, 'lookup'::character varying])::text[])))
);
CREATE SEQUENCE public.connection_tables_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.connection_tables_serial_seq OWNED BY public.connection_tables.serial;
CREATE TABLE public.job_log (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    job_id character varying(200) NOT NULL,
    created_at bigint NOT NULL,
    generation integer NOT NULL,
    level character varying(8) NOT NULL,
    message text NOT NULL,
    details text NOT NULL,
    operator_id text,
    task_index integer,
    error_domain character varying(16),
    CONSTRAINT ck_job_log_error_domain CHECK (((error_domain)::text = ANY ((ARRAY['user'::character varying, 'external'::character varying, 'internal'::character varying])::text[]))),
    CONSTRAINT ck_job_log_level CHECK (((level)::text = ANY ((ARRAY['info'::character varying, 'warn'::character varying, 'error'::character varying])::text[])))
);
CREATE SEQUENCE public.job_log_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.job_log_serial_seq OWNED BY public.job_log.serial;
CREATE TABLE public.job_statuses (
    job_id character varying(200) NOT NULL,
    state character varying(24) NOT NULL,
    state_since bigint NOT NULL,
    generation integer NOT NULL,
    controller text,
    start_time bigint,
    finish_time bigint,
    tasks integer,
    failure_message text,
    failure_domain character varying(16),
    restarts integer NOT NULL,
    restart_nonce integer NOT NULL,
    settings json NOT NULL,
    worker json,
    restored integer DEFAULT 0 NOT NULL,
    history integer DEFAULT 0 NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    CONSTRAINT ck_job_statuses_failure_domain CHECK (((failure_domain)::text = ANY ((ARRAY['user'::character varying, 'external'::character varying, 'internal'::character varying])::text[]))),
    CONSTRAINT ck_job_statuses_state CHECK (((state)::text = ANY ((ARRAY['Created'::character varying, 'Compiling'::character varying, 'Scheduling'::character varying, 'Running'::character varying, 'Rescaling'::character varying, 'Restarting'::character varying, 'Recovering'::character varying, 'CheckpointStopping'::character varying, 'Stopping'::character varying, 'Stopped'::character varying, 'Finishing'::character varying, 'Finished'::character varying, 'Failing'::character varying, 'Failed'::character varying])::text[])))
);
CREATE TABLE public.jobs (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    pipeline_id character varying(200) NOT NULL,
    stop character varying(16) NOT NULL,
    parallelism integer NOT NULL,
    checkpoint_interval_micros bigint NOT NULL,
    ttl_micros bigint,
    restart_nonce integer NOT NULL,
    restart_mode character varying(8) NOT NULL,
    history integer NOT NULL,
    env_vars json NOT NULL,
    scheduler_config json NOT NULL,
    revision integer NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    place text,
    restore json,
    fulfilled integer DEFAULT 0 NOT NULL,
    scheduler character varying(16) DEFAULT 'local'::character varying NOT NULL,
    slices integer,
    CONSTRAINT ck_jobs_parallelism CHECK (((parallelism >= 1) AND (parallelism <= 1024))),
    CONSTRAINT ck_jobs_restart_mode CHECK (((restart_mode)::text = ANY ((ARRAY['safe'::character varying, 'force'::character varying])::text[]))),
    CONSTRAINT ck_jobs_stop CHECK (((stop)::text = ANY ((ARRAY['none'::character varying, 'checkpoint'::character varying, 'graceful'::character varying, 'immediate'::character varying, 'force'::character varying])::text[])))
);
CREATE SEQUENCE public.jobs_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.jobs_serial_seq OWNED BY public.jobs.serial;
CREATE TABLE public.key_sample (
    id integer NOT NULL,
    sample text NOT NULL
);
CREATE TABLE public.leader (
    id integer NOT NULL,
    controller text NOT NULL,
    term integer NOT NULL,
    seen_at bigint,
    deaths integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.leftovers (
    place text NOT NULL
);
CREATE TABLE public.pipelines (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    udfs json NOT NULL,
    graph json NOT NULL,
    program json NOT NULL,
    tags json NOT NULL,
    state_url text,
    is_preview boolean NOT NULL,
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.pipelines_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.pipelines_serial_seq OWNED BY public.pipelines.serial;
CREATE TABLE public.udf_versions (
    udf_id character varying(200) NOT NULL,
    number integer NOT NULL,
    language character varying(8) NOT NULL,
    definition text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.udfs (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    prefix text NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    language character varying(8) NOT NULL,
    definition text NOT NULL,
    description text,
    artifact character varying(64),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT ck_udfs_language CHECK (((language)::text = ANY ((ARRAY['python'::character varying, 'rust'::character varying, 'c'::character varying])::text[])))
);
CREATE SEQUENCE public.udfs_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.udfs_serial_seq OWNED BY public.udfs.serial;
ALTER TABLE ONLY public.connection_profiles ALTER COLUMN serial SET DEFAULT nextval('public.connection_profiles_serial_seq'::regclass);
ALTER TABLE ONLY public.connection_tables ALTER COLUMN serial SET DEFAULT nextval('public.connection_tables_serial_seq'::regclass);
ALTER TABLE ONLY public.job_log ALTER COLUMN serial SET DEFAULT nextval('public.job_log_serial_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN serial SET DEFAULT nextval('public.jobs_serial_seq'::regclass);
ALTER TABLE ONLY public.pipelines ALTER COLUMN serial SET DEFAULT nextval('public.pipelines_serial_seq'::regclass);
ALTER TABLE ONLY public.udfs ALTER COLUMN serial SET DEFAULT nextval('public.udfs_serial_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('v0008');
INSERT INTO public.artifacts VALUES ('abababababababababababababababababababababababababababababababab', 'libplane.so', 'python', 1, 1, NULL);
INSERT INTO public.checkpoints VALUES ('job_zHff15IfSw', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_cOfK83rvS1', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_EqQqxdcPzQ', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_5VXjHyEvIZ', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_G5hLfvU4yN', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_ULdL069sPu', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.connection_profiles VALUES (1, 'cp_7gS90QJePj', 'p', 'sqlite', '', '{"uri": "gAAAAABrCv5Goiy36T4JGPdn2hQOcSYYQ-z4hkeQ-y4CbiWnDmPZVrtvYGLz12U8Lpvazo6SYr3EetZ3AHMjJiDj5djqRSXNHw=="}', 1795882566442997, 1795882566442997);
INSERT INTO public.connection_table_uses VALUES ('ct_SJGzBOvKs5', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_SJGzBOvKs5', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_SJGzBOvKs5', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_SJGzBOvKs5', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_SJGzBOvKs5', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_SJGzBOvKs5', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_SJGzBOvKs5', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_SJGzBOvKs5', 't', 't', 'source', 'sqlite', 'cp_7gS90QJePj', '{}', '{}', 1795882566459011);
INSERT INTO public.job_log VALUES (1, 'jlm_SOlX5amrl6', 'job_zHff15IfSw', 1795882566559775, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_nQaOpBjFoB', 'job_cOfK83rvS1', 1795882566593544, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_jHIdoOkszj', 'job_EqQqxdcPzQ', 1795882566633035, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_Lz29MjAA5p', 'job_5VXjHyEvIZ', 1795882566659689, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_dwjxa858SG', 'job_G5hLfvU4yN', 1795882566689039, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_kwhdAtY3OH', 'job_ULdL069sPu', 1795882566710132, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_statuses VALUES ('job_XVj7MlKaDp', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_zHff15IfSw', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5GaTCqFFS9RfCenVV34fJK9uIGyvPAJpxsHGOpW4s6FTFbcZi2Kawv2uYSFziAna72xwvxQiY0r2U-QaRzjogg1C3yFMGb-PzaOklJ5NfqRknu-MpkygniktAkOxIBDYHn"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_cOfK83rvS1', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5GTwQ7Ub5mifXekBSQhevYXEDyuODItg38X35L0arV4AlCY29r07QwDlfW21A_90NgsiLODMAoqy15kdTPrrOOcaY09mQ7etzfCZq0wiqCkcQeXjRUf0gCaqCcWq-UzJaO"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_EqQqxdcPzQ', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5GzLjtkPErLF47u99koH9tLe3AJ0usTTJemr08hvY6Cg2awJD0L7FAsOWoJRXIByjSbWpU7Wi6DAK0Uy7lOYruJp2VP5EO_WfwW2Ev0cKBSHNLP8MeUudyWzb65qjF0CY3"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_5VXjHyEvIZ', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5Gx4A_5y37QgGUekbSwApRRjBMkMGhHFrSQYD-by-Sj6ghzour7FkRru39UJ37wcr4mXamO676BGZ-SNxPtwqwRmE8DNQCeQsmwzkhzBHpxcpN0yK3aSLJDGYx3MenXmgL"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_G5hLfvU4yN', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5Gjg4o555QVCFjWFax05Rx6ESyg71XfgM6JLJ1iJPEtUQA9vPHfTw7wD5pb43WOkMRSsmDuWf0ofY0aXUXo_b5DvrYIzP-ahjuYiUyOBmFw98-j8KFJg1GKRwUmRFQBpRE"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_ULdL069sPu', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5GcEkQp8ucgcC_K2O-p7QL-m-RTpxIGZMae_51SLso-XD4u_z75GKTfa0MZUwdg-osghcqtmWtoPC1Xm80BJz9Pk763D-EvtHX0I1sO-iL8W8RxVNHiBJqatRa1Pm2jvQY"}', NULL, 0, 0, 7);
INSERT INTO public.jobs VALUES (1, 'job_XVj7MlKaDp', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCv5GfDHaL2pcHU7byxgLs5b9bciRN39PoXCDhk49XwA2whbuQLHoMumWm1DmhLqyBRTIm8ICo0mCm5ydp1jfr3V283iQ0e-SnCmC3yqgx1Vp78M="}', '{}', 1, 1795882566497987, 1795882566497987, '/nowhere/checkpoints/job_XVj7MlKaDp', NULL, 0, 'local', NULL);
INSERT INTO public.jobs VALUES (2, 'job_zHff15IfSw', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCv5G7t6J9CuPds9zBy2NXilLsvlUafcjHVQ0cbdz3kTyNdnYASniEeS8mVwIeJ3wFz6v8f97mcPhqjrp9bL4eoaxPpalmylpat4Wd8o0dFQupuk="}', '{}', 1, 1795882566543654, 1795882566543654, '/nowhere/checkpoints/job_zHff15IfSw', NULL, 0, 'local', NULL);
INSERT INTO public.jobs VALUES (3, 'job_cOfK83rvS1', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCv5GNSNq5gj3UY_JoB3PMZ75oWKX5rymn0_pqsuQbDNCBMlDG1LZ4lif8JTidnxCDjam8UEOVJOVSROFIvxi2W0vcUwNxkRN7Eese_VVtlxM18s="}', '{}', 1, 1795882566579228, 1795882566579228, '/nowhere/checkpoints/job_cOfK83rvS1', NULL, 0, 'local', NULL);
INSERT INTO public.jobs VALUES (4, 'job_EqQqxdcPzQ', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCv5G_lpzOrVIEs9surZW7BqdZ1ZvELV5SFoegPzb5PJxBslX9hzX-DhnTA-kRN1rVSryYLrM72VRG38tFHpmaP-vCV1zOWXciluOMtGCojn_iRk="}', '{}', 2, 1795882566605048, 1795882566632179, '/nowhere/checkpoints/job_EqQqxdcPzQ', NULL, 0, 'local', NULL);
INSERT INTO public.jobs VALUES (5, 'job_5VXjHyEvIZ', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCv5GEBFOglgS-zTO6surAuq4X7JU1_omu56nNQ4URNlLr-S8tdRKbiuNpJKc222qEv1QycZwnSHUKe7S5_Za3CyYxSPHxMExf94rFXCFw76O81E="}', '{}', 2, 1795882566640957, 1795882566658955, '/nowhere/checkpoints/job_5VXjHyEvIZ', NULL, 0, 'local', NULL);
INSERT INTO public.jobs VALUES (6, 'job_G5hLfvU4yN', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCv5GGmf35JO_EICUx2AVcIo9OKYEa7sBLYxU36PF8mVkgjKb3SVtDlw01TdN4_k5AhW5i15OnvcwZM7nfiFvLjgFc3uXqAIJ7QeoYtIQUyh4sio="}', '{}', 1, 1795882566666997, 1795882566666997, '/nowhere/checkpoints/job_G5hLfvU4yN', NULL, 0, 'local', NULL);
INSERT INTO public.jobs VALUES (7, 'job_ULdL069sPu', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCv5G50wenG-ekFxK0OMgV20bt_ajiOiMqIsMVuVbYRr1s_ux_RAB-RJl-4h5zZj8OMfkWr1v24mqL-N9ryWIyg9i-sVqaj8_r2REGIdUUp0zWy8="}', '{}', 1, 1795882566694638, 1795882566694638, '/nowhere/checkpoints/job_ULdL069sPu', NULL, 0, 'local', NULL);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrCv5GEM1BwxnyO9Myx3PrQv6WO3xPc_QoQAbF6XSwJCTzbqSz-MKLIO6K8uEQHp6oOb_wWkYprtj1-ByKgpZLZxnU3w==');
INSERT INTO public.leader VALUES (1, 'a controller', 1, 1795882566493477, 0);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5GAGI_Cjrb66M_EMRf994TCNbKnDadE2rdxEr4mgBMzKDHw1jpJSr0Hb5I3PNxS1dU-Gi5Jn8ezAH9__YNsHUMl0U-TIi9slVwBMYE1o0zdX0RDbS2WRemTqipdQ5i99am"}', '{"team": "a"}', NULL, false, 1795882566497987);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5GH1I_gudWRxodI8rcF7wd8JxCLCc7nNjhoNycy7iVJn_yl-8ptxLEgVvWLPD1hfAbLQH8P85bSaG8C_1H8uP35VcbNjLQFuLfR0x6C4mfo1YT73MmofQa8k-z4ylntE1T"}', '{"team": "a"}', NULL, false, 1795882566543654);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5GsEAQwqfLlRaubn5EcRfJfw4aoMhEvl1g-PBqEHP6q-ZhNNB_S2SN6eNi4vTOp8PPdEOQ8BsD3R6upNSDdEbSids_REDFLMgpy0echtvye6eMzWpcTCQqJBdFBloRjXuX"}', '{"team": "a"}', NULL, false, 1795882566579228);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5G3JLUCXrX6Yatgef9mrw683UrnTtbiJ05B2cwavpCZFzfwti9VfxgnwW0VWhLc32xgdqpk08TKwoNbxwdX1h5pac65bbKJFatoBDbltxaQF7RUdGWOBi8sH8aS5MFrMKI"}', '{"team": "a"}', NULL, false, 1795882566605048);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5GOeqr76O3vYdQbY8r8zbBwvbBycvoVIntOERoiWh5K6VqJGcpV6kTZj7hbAS8er3Sm5BvbhLbSfaSxK1ZuUTrhZXvJqxfmZ5H-P_tDMG7TP9N67NrQiwlXLoEjBvpEXrS"}', '{"team": "a"}', NULL, false, 1795882566640957);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5GX0O40TVkLoOr_oGdKAaFez1K0SH8Q1lIDabPQwLNqYsxjWwz3Y9N48x70EGsxTUMwk5ZZXiv4kRlJImv9IwYxHlOAaB0G8pcR7982BHVYZBDxYEIpUfb0ixpiNrci8xv"}', '{"team": "a"}', NULL, false, 1795882566666997);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5G6D7opMZ95QytFNP2Gjp55kjzMEXV72AszDtLnLw7MJzbL3sotwwPvigEOXTEFEroIk5IU_FwLOe0FLq4LfMGxJ_uBXMyjfIaU3rwR4-h_wPGbhWmzDKMLb45H1iMA5kT"}', '{"team": "a"}', NULL, false, 1795882566694638);
INSERT INTO public.udf_versions VALUES ('udf_hDVWpQnbhA', 1, 'python', 'def plane(): ...', 1795882566467048);
INSERT INTO public.udfs VALUES (1, 'udf_hDVWpQnbhA', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795882566467048, 1795882566467048);
SELECT pg_catalog.setval('public.connection_profiles_serial_seq', 1, true);
SELECT pg_catalog.setval('public.connection_tables_serial_seq', 1, true);
SELECT pg_catalog.setval('public.job_log_serial_seq', 6, true);
SELECT pg_catalog.setval('public.jobs_serial_seq', 7, true);
SELECT pg_catalog.setval('public.pipelines_serial_seq', 7, true);
SELECT pg_catalog.setval('public.udfs_serial_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.artifact_uses
    ADD CONSTRAINT pk_artifact_uses PRIMARY KEY (artifact, pipeline_id);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT pk_artifacts PRIMARY KEY (sha256);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT pk_checkpoints PRIMARY KEY (job_id, epoch);
ALTER TABLE ONLY public.connection_profiles
    ADD CONSTRAINT pk_connection_profiles PRIMARY KEY (serial);
ALTER TABLE ONLY public.connection_table_uses
    ADD CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id);
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT pk_connection_tables PRIMARY KEY (serial);
ALTER TABLE ONLY public.job_log
    ADD CONSTRAINT pk_job_log PRIMARY KEY (serial);
ALTER TABLE ONLY public.job_statuses
    ADD CONSTRAINT pk_job_statuses PRIMARY KEY (job_id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT pk_jobs PRIMARY KEY (serial);
ALTER TABLE ONLY public.key_sample
    ADD CONSTRAINT pk_key_sample PRIMARY KEY (id);
ALTER TABLE ONLY public.leader
    ADD CONSTRAINT pk_leader PRIMARY KEY (id);
ALTER TABLE ONLY public.leftovers
    ADD CONSTRAINT pk_leftovers PRIMARY KEY (place);
ALTER TABLE ONLY public.pipelines
    ADD CONSTRAINT pk_pipelines PRIMARY KEY (serial);
ALTER TABLE ONLY public.udf_versions
    ADD CONSTRAINT pk_udf_versions PRIMARY KEY (udf_id, number);
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT pk_udfs PRIMARY KEY (serial);
ALTER TABLE ONLY public.connection_profiles
    ADD CONSTRAINT uq_connection_profiles_id UNIQUE (id);
ALTER TABLE ONLY public.connection_profiles
    ADD CONSTRAINT uq_connection_profiles_name UNIQUE (name);
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT uq_connection_tables_id UNIQUE (id);
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT uq_connection_tables_key UNIQUE (key);
ALTER TABLE ONLY public.job_log
    ADD CONSTRAINT uq_job_log_id UNIQUE (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT uq_jobs_id UNIQUE (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT uq_jobs_pipeline_id UNIQUE (pipeline_id);
ALTER TABLE ONLY public.pipelines
    ADD CONSTRAINT uq_pipelines_id UNIQUE (id);
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT uq_udfs_id UNIQUE (id);
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT uq_udfs_key UNIQUE (key);
CREATE INDEX ix_artifact_uses_pipeline_id ON public.artifact_uses USING btree (pipeline_id);
CREATE INDEX ix_connection_table_uses_pipeline_id ON public.connection_table_uses USING btree (pipeline_id);
CREATE INDEX ix_connection_tables_profile_id ON public.connection_tables USING btree (profile_id);
CREATE INDEX ix_job_log_job_id ON public.job_log USING btree (job_id);
CREATE INDEX ix_job_statuses_state ON public.job_statuses USING btree (state);
CREATE INDEX ix_jobs_unfulfilled ON public.jobs USING btree (id) WHERE (revision <> fulfilled);
CREATE INDEX ix_pipelines_is_preview ON public.pipelines USING btree (is_preview);
CREATE INDEX ix_udfs_artifact ON public.udfs USING btree (artifact);
ALTER TABLE ONLY public.artifact_uses
    ADD CONSTRAINT fk_artifact_uses_artifact FOREIGN KEY (artifact) REFERENCES public.artifacts(sha256) ON DELETE RESTRICT;
ALTER TABLE ONLY public.artifact_uses
    ADD CONSTRAINT fk_artifact_uses_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT fk_checkpoints_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.connection_table_uses
    ADD CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.connection_table_uses
    ADD CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY (table_id) REFERENCES public.connection_tables(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT fk_connection_tables_profile_id FOREIGN KEY (profile_id) REFERENCES public.connection_profiles(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.job_log
    ADD CONSTRAINT fk_job_log_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_statuses
    ADD CONSTRAINT fk_job_statuses_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.udf_versions
    ADD CONSTRAINT fk_udf_versions_udf_id FOREIGN KEY (udf_id) REFERENCES public.udfs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT fk_udfs_artifact FOREIGN KEY (artifact) REFERENCES public.artifacts(sha256) ON DELETE RESTRICT;
