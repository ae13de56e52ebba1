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
INSERT INTO public.checkpoints VALUES ('job_4UOiI2lZOQ', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_fh3Bw1wtgD', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_SzluZ3gP6z', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_PJIKiQhGpa', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_xoYCLzgYRS', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_C2w6kzaTj7', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.connection_profiles VALUES (1, 'cp_mBfzGRp2xV', 'p', 'sqlite', '', '{"uri": "gAAAAABrBA4OEal43s1JE8OfGcaWkAH-y8zYA1ygkqUrcO_rdAfq-fsu1F5VJ2txGQd7VWogj9cWq-KvQ5cfLAJBknE6ghlmow=="}', 1795427854123050, 1795427854123050);
INSERT INTO public.connection_table_uses VALUES ('ct_EaKUDstsWg', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_EaKUDstsWg', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_EaKUDstsWg', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_EaKUDstsWg', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_EaKUDstsWg', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_EaKUDstsWg', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_EaKUDstsWg', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_EaKUDstsWg', 't', 't', 'source', 'sqlite', 'cp_mBfzGRp2xV', '{}', '{}', 1795427854131136);
INSERT INTO public.job_log VALUES (1, 'jlm_9OJALpBlrh', 'job_4UOiI2lZOQ', 1795427854200504, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_9zMxykzRCP', 'job_fh3Bw1wtgD', 1795427854254017, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_J4GT6pna5M', 'job_SzluZ3gP6z', 1795427854331422, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_K4mskHj0RF', 'job_PJIKiQhGpa', 1795427854391430, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_bBSq7owXwg', 'job_xoYCLzgYRS', 1795427854417463, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_nBuwbosPcZ', 'job_C2w6kzaTj7', 1795427854436573, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_numbers VALUES ('job_4UOiI2lZOQ', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_fh3Bw1wtgD', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_SzluZ3gP6z', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_PJIKiQhGpa', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_xoYCLzgYRS', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_C2w6kzaTj7', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_output VALUES (1, 'job_4UOiI2lZOQ', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (2, 'job_fh3Bw1wtgD', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (3, 'job_SzluZ3gP6z', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (4, 'job_PJIKiQhGpa', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (5, 'job_xoYCLzgYRS', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (6, 'job_C2w6kzaTj7', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_statuses VALUES ('job_O7mMR5EKx9', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL);
INSERT INTO public.job_statuses VALUES ('job_4UOiI2lZOQ', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4Ont64NP7Awnubx0j6b7nPjEpUJmOmH9OIeMdbOwymTofPdC4ThXlPQt9ISMAlLPqb0tyVaVoKalGnxxA7dClpz3QEF0mMnaLZSy0bPcDvHCg56mzDFebkQWmcYRqaNZN3", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_fh3Bw1wtgD', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4Ofoy2MKr9TXdswJyysh44CuNXndf5lerZMEJICzOyQgf-8jZPDwRCYq-SnhMfVcIUOUkcyKYMOPdrUa4ynjCOrnjQhjyF9G4JZL5tVOBpuqBzX43vXY7lTKYzXPCcPlpA", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_SzluZ3gP6z', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4OV7zDhMnu7aM8WB8ecYUY6mslHRvFTVtOWXu62Q1Th2T2PVRjGQctfRyd0hBpajHwYwz3WgV4u_WwYPchzKI7IVh5AqRrw1CmFddoekeISxp1WQF7NtZ3YM10_2IlPJTU", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_PJIKiQhGpa', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4O9lHWde4VUr10tlG9nAUET2FRgZcST1c9UXgoqmpkJmlDtiKeZ5T0HrjVnMzR5YOERF80aIcJPNUd4tMS0VIkXsLquiK58_JixQkJzTbjyzWQvddqBnPGGTIV0f4bSxXn", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_xoYCLzgYRS', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4OhBoyz8WDmnNpkN3Ww4UjrKDjkJJcO1lGf4pmgIabc8KrwYz9sMtC2h7WBkXLTO99ocPUdqYSpALj4E9eUirM34KfqToaovpcrYkdlRjqXoxbrcPtsIYejQasJwYBF923", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_C2w6kzaTj7', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4OQgPdzMrFHBHmJz3eulB9F88BufBTYkMn6h4UtZYLIuk-X-cdfmjHHQMpgrfR5p7PVqONjXtWN8r_8-XppjWMA8FHK_MIauTkj5x5Zg5y4M4f6KoMy7cWlEuXsaXAsOA6", "scheduler_config": {}}', NULL);
INSERT INTO public.jobs VALUES (1, 'job_O7mMR5EKx9', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBA4Ow9m8ixWIB4Q9rTYfYlzhoRKXAe0IEA9ugNVkGGl8TanTr8Mvt_DdTC-Xe8giea0I6k1xBxE9QwZLcjmbJEX_GzGOLq5-Ueh2s0umlLg3mmI="}', '{}', 1, true, 1795427854142801, 1795427854142801);
INSERT INTO public.jobs VALUES (2, 'job_4UOiI2lZOQ', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBA4O-Z4-uak8ga4Y9WeRe6lFpQ0pY5CBVjg97f-MQqS__OGmt92gqieVJ77VMG0CsMgADALsIMg2ekWCoEJiYKHdeFwEs_oWP3reGOvium5sh4A="}', '{}', 1, true, 1795427854186369, 1795427854186369);
INSERT INTO public.jobs VALUES (3, 'job_fh3Bw1wtgD', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBA4OGIke_eXkYsJR6B4kzzsHNqZzGOoKDb7JkCDEAH877vUKv3C2uTvRKF_dY4lL_Yj3DSBbJ72ep-LHbmrbNC67V6Kcp_bbU8xUPJBNdFNMBDU="}', '{}', 1, true, 1795427854235302, 1795427854235302);
INSERT INTO public.jobs VALUES (4, 'job_SzluZ3gP6z', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBA4O3AVMidVOGxunBJIZLZpRqSlo6EZqLsBbAhb-Fgctvy4862ajm6kBk28bj8Q1XzvavjDYkOSm8daoS0FsRstgLQhiT6H1wFBuAtGaZavgVN8="}', '{}', 2, true, 1795427854286520, 1795427854327326);
INSERT INTO public.jobs VALUES (5, 'job_PJIKiQhGpa', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBA4ODIk36k_7FgqBnWOr8GXZGEl9eocffMiR9_Rc0SUPetJ5cJfeurrvO0r1n9gjH3Pa396fuJijqfIpN_nMBV5xLYRajVM_n_v0WDfvFyjDCZ8="}', '{}', 2, true, 1795427854366457, 1795427854390736);
INSERT INTO public.jobs VALUES (6, 'job_xoYCLzgYRS', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBA4O3sV69eM3i3TlLBUlR7U5vCI2fCrF5h8Hr-dQHCL4MBp0_6c4A5sEhvgDF-ar-TLSm1-VOs_5sGh7ZB685BzRgc-N49xKuOtNmB9hiYV42KE="}', '{}', 1, true, 1795427854407220, 1795427854407220);
INSERT INTO public.jobs VALUES (7, 'job_C2w6kzaTj7', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBA4OwuFQZFSveIMS_TMwfPHhiWmoVF5QEV92Emjd7GCveeK7izwKEYcQ-2pMyqcE_GTfmYjJEJoWxJPztTxqJL1pfCpj_4TQKT9cfCQ5QT1JWr8="}', '{}', 1, true, 1795427854427918, 1795427854427918);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrBA4OEYf9BpJtrl0BwbVnn_r859Bgde8pMibLjvLL_JRVqeqArCn3SG7VgUw1ndwZFbRSkw5De5eqQXC7nW9fYzNVnw==');
INSERT INTO public.leader VALUES (1, 'a controller', 1);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4OXbYm9MrLxmh7dAWrXWIDycn5qqOK6Ebynyoh96kg5ChuLTZC0yWdl73iwqeJD3wn3zciDWr9wvn5xr7hm84q7qg_EynBI1VodYemRRs6XODouLgRglE4rUZsnWOMREid"}', '{"team": "a"}', NULL, false, 1795427854142801);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4OOQDka6keKvGgM7tNyjxIAUu5H8oOcGXZQaHF38uF3TtRysqHd2mN7zWsi6HK0M_fCYPtajAQRwvhB4lnXkMilovwqWj4x_JWjCP8VnqnHZ3dIsSudpC5KOzrvNMkgjQa"}', '{"team": "a"}', NULL, false, 1795427854186369);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4OKQOZiasdxCGsh_z-3ouCzBkv13xgKPjPjyhJVpWOv41BtC9myATr0Y4rAnTpD__h3T40K7tvHA3FlCc5RSX-RAfi86301cu2LkYkFbyN5thviZAwI6aVq6mVqdpu8TZr"}', '{"team": "a"}', NULL, false, 1795427854235302);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4OX7OEkDnZaD_G91lPac8Jhdjv8cpYf2fRkT6Yw-2Pulj_e2coMuHovLWwFFpUDj2FUzHxtVV493Mw7EmZ94JsdB3NFSBTPTkrIu_vM80XHRfE_OeOeH9KFQKn_9g-PTAb"}', '{"team": "a"}', NULL, false, 1795427854286520);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4O1tUwxrKfKaF5K4moAN_PVQqXGg4Qzhx_C75hdN3_UneCnadwtJAUwresvcKXOM-PX5yRy1_PGW9VjTHZaV1QjNnvBNuQOf_9cWE-WIlWUe6x4m5u0yt7tKoIlZ9EUwjc"}', '{"team": "a"}', NULL, false, 1795427854366457);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4ODq5uACP3RkBcHhIGeisGjF1np6h2RtHZArvE_9pm6K_coHxb9aUpFkn6kVzLQwo_SnYidh5MkrzTEarwun2sLXaIob6oRPbw47jG7FLio278vHHah53MrQtSx3EonjVV"}', '{"team": "a"}', NULL, false, 1795427854407220);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4Ovs3A4GEdlMmH2xPMa3Oyr4LwFbuzcRFRoUEIRtc4-qo-wKVUZTQ2jHhH3uvKDAO31tXLbmZ49KZ7tIZclBFLQk8chr4l9-Dmf5FcYRHnUphvy3Y6JVyvvuuf9u5xjWfh"}', '{"team": "a"}', NULL, false, 1795427854427918);
INSERT INTO public.udfs VALUES (1, 'udf_GR53hww6YB', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795427854136212, 1795427854136212);
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
