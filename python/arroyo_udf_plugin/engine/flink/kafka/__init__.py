"""Topics of Kafka on Flink, by Flink's own connector: it reads and writes, and its checkpoints have the offsets and the
transactions. What a message means is the embedded engine's.

    KafkaSource ──► ReadsRecords ──► PacksRecords ──► FeedsSlices ──► FeedFunction ──► the stages that follow
                    bytes            many as one,     ticks, marks    rows
                                     for a slice

    stages ──► MessagesFunction ──► UnpacksMessages ──► WritesMessages ──► KafkaSink
               many messages as one

feeding.py    a slice of the stage that gets messages
packed.py     many messages as one record

With PyFlink:

topics.py     both ends as operators of Flink
asking.py     what a cluster says of a topic, when a job is submitted
functions.py  their functions of Flink
*.java        what has to be in Flink's own processes
"""
