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
CREATE TABLE public.job_numbers (
    job_id character varying(200) NOT NULL,
    at bigint NOT NULL,
    numbers json NOT NULL
);
CREATE TABLE public.job_output (
    serial bigint NOT NULL,
    job_id character varying(200) NOT NULL,
    number integer NOT NULL,
    operator_id text NOT NULL,
    subtask_idx integer NOT NULL,
    start_id bigint NOT NULL,
    timestamps json NOT NULL,
    batch text NOT NULL
);
CREATE SEQUENCE public.job_output_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.job_output_serial_seq OWNED BY public.job_output.serial;
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
    pending boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
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
    term integer NOT NULL
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
ALTER TABLE ONLY public.job_output ALTER COLUMN serial SET DEFAULT nextval('public.job_output_serial_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN serial SET DEFAULT nextval('public.jobs_serial_seq'::regclass);
ALTER TABLE ONLY public.pipelines ALTER COLUMN serial SET DEFAULT nextval('public.pipelines_serial_seq'::regclass);
ALTER TABLE ONLY public.udfs ALTER COLUMN serial SET DEFAULT nextval('public.udfs_serial_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('v0003');
INSERT INTO public.artifacts VALUES ('abababababababababababababababababababababababababababababababab', 'libplane.so', 'python', 1, 1, NULL);
INSERT INTO public.checkpoints VALUES ('job_We3wx6JBUC', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_KhCzGzyJem', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_rbx67p8ltD', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_SVcLQkTpdj', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_y0ZjindPgV', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_4l63BjYd5y', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.connection_profiles VALUES (1, 'cp_Ytp8sg8Ewc', 'p', 'sqlite', '', '{"uri": "gAAAAABrBAxbagdZmWT-q2rfIaSnYBJJsYbqW5HdwTc5ZNtWdkcayGTvtPL6s4TSZEm221xsavH7BETOcIXKbu_LyeIDnV73Zg=="}', 1795427419559094, 1795427419559094);
INSERT INTO public.connection_table_uses VALUES ('ct_VREufBx5fp', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_VREufBx5fp', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_VREufBx5fp', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_VREufBx5fp', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_VREufBx5fp', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_VREufBx5fp', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_VREufBx5fp', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_VREufBx5fp', 't', 't', 'source', 'sqlite', 'cp_Ytp8sg8Ewc', '{}', '{}', 1795427419564488);
INSERT INTO public.job_log VALUES (1, 'jlm_gSlBsO21UE', 'job_We3wx6JBUC', 1795427419609191, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_QWcGd8LtrZ', 'job_KhCzGzyJem', 1795427419640131, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_Gfr2rtAwJR', 'job_rbx67p8ltD', 1795427419684927, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_kkMCm5tcQK', 'job_SVcLQkTpdj', 1795427419712267, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_sfimaNfFcH', 'job_y0ZjindPgV', 1795427419751291, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_EhChwHJ0Ko', 'job_4l63BjYd5y', 1795427419769939, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_numbers VALUES ('job_We3wx6JBUC', 1000000, '{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_KhCzGzyJem', 1000000, '{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_rbx67p8ltD', 1000000, '{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_SVcLQkTpdj', 1000000, '{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_y0ZjindPgV', 1000000, '{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_4l63BjYd5y', 1000000, '{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_output VALUES (1, 'job_We3wx6JBUC', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (2, 'job_KhCzGzyJem', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (3, 'job_rbx67p8ltD', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (4, 'job_SVcLQkTpdj', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (5, 'job_y0ZjindPgV', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (6, 'job_4l63BjYd5y', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_statuses VALUES ('job_OXbwDnfuDK', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL);
INSERT INTO public.job_statuses VALUES ('job_We3wx6JBUC', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbio41B3IDoFenecvcBItcht016BkONhDuivZatr9s_-RY3xvH2M8P6bFlAuty1Cp5bHQ_Y-DxqeuHO8FnsgmzwCJ5RnfOZ23zzK6cUw8JIFQGUvI7os7cP61OLuTJzN-Y", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_KhCzGzyJem', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbiow1R_9MrznQFq7Eo7RXN3nIrHnZ-UpRkETtpUUQ2YmX-vF1Q2s67qN6vOdihcaFpq0iBMmNRsjj3BusuG5aYPr-cap-B_GEvw1YoLnq_cUp1yCSOiHNInqFjKtccLIn", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_rbx67p8ltD', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbNGYWKhA2jp86_Sc7OxNBk9gcee0lfMzK6TsGvlpDBpbdMH3zzYcrO_e5Fv57WcVhouGiUM0yx18u7iJF1ZuZwG4LTZCSCfgI5TobK5kIDe9AKtDJExCfUK6vEwxgg3fJ", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_SVcLQkTpdj', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbqxXK6KYY211ty-YY97rchzUABuM8dB5yehOz84b4vDtCvWZ_OpUOkHyd9GdNZ4-TbN_F8j2WD3s7TYtqnSOhmxp9Y2DDUVAb04IgDqjrCgYpx1fnuHp3AJtcI_FXhVg7", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_y0ZjindPgV', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxb_2N7FC_bYEpjo323y9EfUKE7Jf-9D6BLeT5Jn7r_7GFdBC0Ug2Gj34xIEz-MzRoFd0y1oCun8OVHBUkxwgeJ-OtI4-Za43anvweRkRfxzKDQP0RYMYRvoBNWoNgfSeQm", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_4l63BjYd5y', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbv4SQBwHdRROFCQtci_fznMgWjRejKcNMieP-sweFRjFpk65uwrk2JY66I4SQKr16CAEr6lGuU933du5UHQVDqVq3IMgXSlMy3UVKLJsvp1h8LZ67QZknS8lEzheR9Lbo", "scheduler_config": {}}', NULL);
INSERT INTO public.jobs VALUES (1, 'job_OXbwDnfuDK', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxbA4chXY8c_e_sXVe968wqJfOyWw_v_5FObfeYz84_rd4jkCRO03DimgquyUOP_UiUX434sBJ-3ICuWFjURro9IDzJAm165qHAUVuiekW57u8="}', '{}', 1, true, 1795427419571276, 1795427419571276);
INSERT INTO public.jobs VALUES (2, 'job_We3wx6JBUC', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxb5oWZl9C8X3wr2GuYQ7QogGpBYcJQKNstQUlJ2INEozpvWfr0cksLOzdcsfnspkxd0rNnYt8rsdy5E0jxduDqM5BPAepgvopgL2Z42iyuSiE="}', '{}', 1, true, 1795427419600798, 1795427419600798);
INSERT INTO public.jobs VALUES (3, 'job_KhCzGzyJem', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxbkvAL7I2PFghLITadbvJoykIdx9AJspwjy0MPEQJc2csp8wCEdqyCU60w_wbxXh83Qwr3NkRIeI9-9aBS7K29Q0qWMKO8sXJr7eOw9ZJ1vEU="}', '{}', 1, true, 1795427419629356, 1795427419629356);
INSERT INTO public.jobs VALUES (4, 'job_rbx67p8ltD', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxbOZ5EDajxMI-JmESZRdlCa-aHF7WmN2ad7lkxwx5BU7sXMSZZjTYN9AA9uZV1ZH14K7fTE4i-IjBvRRqr2k1tObuCNwLbQWOSgj8aSK0Bz3U="}', '{}', 2, true, 1795427419654918, 1795427419683735);
INSERT INTO public.jobs VALUES (5, 'job_SVcLQkTpdj', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxbujCIRXyfIgF9WYF9xWf8Q34z56MwznKPjtGDrVgncqA7HZaP_G9vyQJlBrnoH1vj432QH3AK5qrK_cr7yJuzWaVPebq_owPa9vtgyY4s7rQ="}', '{}', 2, true, 1795427419695196, 1795427419711404);
INSERT INTO public.jobs VALUES (6, 'job_y0ZjindPgV', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxbF9wrWQ9zEJWF9kNKUPmiKJT7im8ztkwu-gIkC1M6IqbfnWT7wwTtmu-qfiRRPvSMJJ1cRntaJx1fboTdQzvDdYzkzEsClh5iwhuhALZ-Nd8="}', '{}', 1, true, 1795427419728604, 1795427419728604);
INSERT INTO public.jobs VALUES (7, 'job_4l63BjYd5y', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxb723Dm8iOTHD4XiB7PBFcDeUIB7Z0E4lnCV-Crp8OljVF6M_Mwr4m8Di5rVGiJ0EoKSTlQQqW5seDYt3Wa-XSSyFP3zKyyjgYqtWVfR6t1xg="}', '{}', 1, true, 1795427419760089, 1795427419760089);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrBAxbywlh0VmykOx0WEyJuB5DKShkzDW-b2zVc_COYTJG9zR1OBjJmn5nHWqFHbvrXKKmyQA-QPs_iB0DmAgALp3CRQ==');
INSERT INTO public.leader VALUES (1, 'a controller', 1);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbYn5jQYqnUkNMscU66xLAaDt_B0XQtNGdPy-KlGKa--G9Gv8AoPuxT1vuBf1ZO2fuJyblh8vcMeifVoO91b5xuYJC1elS5_ZXBlqLZBjHL0E-neCv7G1Ve1wchG7xXTpk"}', '{"team": "a"}', NULL, false, 1795427419571276);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbHBT_0GVkXmnIBZ4WEnlJDKb-8-xl6pFUZFHfJN0D3ja6qsmWS1SjEJB5K6VmgIRUoy92m25laOnONAPxZUjo9JTFec9VCYeVAR3cO7zF8-6PAhAYEr0p9f_H6G32AP6F"}', '{"team": "a"}', NULL, false, 1795427419600798);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbyoF7YE4NtUbmGOgC749KOWW-f0_zWf5FVXpnMYfGsQ9GeRJKBT2CHriLYT-fYdFnP48KKLA3OCKMc5PiRPFrNrSk11bOjFQVKOAySaqQc674MTVeEyE0GuiqKOYxAvTB"}', '{"team": "a"}', NULL, false, 1795427419629356);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbPgcs43MlU0u32Y-TFq5g-04c4WJ-7bb8d7r6IxZrS7L2C_s7WV_8S9hDRRuWNP6FtimD1nMBjVNEdQtt3azMjzPPCqSXUYPIV4rXDgMmozSfeC0_IHppV26MhcW7ZjW0"}', '{"team": "a"}', NULL, false, 1795427419654918);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbDGWVscro2AYykllwL8UzQb1MFg-TRukEnl0sHZOxw1YsFnnUTAGInfimO1H7o5UL4m28T-KIXe3i_O7R_VmmbgzRnJK4UhnletAS6r-6qm9Z2_JNCQm-6s85CbvUkhFx"}', '{"team": "a"}', NULL, false, 1795427419695196);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbiuImcyfuXna3c2NEVYptVmXPO-jkUB4wMRWdKyu_JotFZtl1peYSXm2PEw6Zo_BAa3k3-GOK8VV8DEiA4jhO7ChFZXhaIo50m4FSIywn3KhjzM4OwqFoDtaXmRiugPtz"}', '{"team": "a"}', NULL, false, 1795427419728604);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbF3AXXKnKRSb4Bj01fHDkhrOZY34q2Maek4yfkvmHPFZvsd-rbeOg39poRxdigu16zZvMXxUKa4AZ1CTnIYj_VJpf0Olvitzx1zaweU_xyGW-W6oLu2GzhBG6PoU0F57-"}', '{"team": "a"}', NULL, false, 1795427419760089);
INSERT INTO public.udfs VALUES (1, 'udf_fsdWPgYBg1', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795427419567820, 1795427419567820);
SELECT pg_catalog.setval('public.connection_profiles_serial_seq', 1, true);
SELECT pg_catalog.setval('public.connection_tables_serial_seq', 1, true);
SELECT pg_catalog.setval('public.job_log_serial_seq', 6, true);
SELECT pg_catalog.setval('public.job_output_serial_seq', 6, true);
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
ALTER TABLE ONLY public.job_numbers
    ADD CONSTRAINT pk_job_numbers PRIMARY KEY (job_id, at);
ALTER TABLE ONLY public.job_output
    ADD CONSTRAINT pk_job_output PRIMARY KEY (serial);
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
CREATE INDEX ix_job_output_job_id ON public.job_output USING btree (job_id);
CREATE INDEX ix_job_statuses_state ON public.job_statuses USING btree (state);
CREATE INDEX ix_jobs_pending ON public.jobs USING btree (pending);
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
ALTER TABLE ONLY public.job_numbers
    ADD CONSTRAINT fk_job_numbers_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_output
    ADD CONSTRAINT fk_job_output_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_statuses
    ADD CONSTRAINT fk_job_statuses_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT fk_udfs_artifact FOREIGN KEY (artifact) REFERENCES public.artifacts(sha256) ON DELETE RESTRICT;
