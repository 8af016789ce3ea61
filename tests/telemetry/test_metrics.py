from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from omniduplex.telemetry.metrics import METRICS, ServerMetrics


def test_what_was_counted_is_exposed() -> None:
    metrics = ServerMetrics(CollectorRegistry())
    metrics.sessions_open.set(2)
    metrics.sessions_closed.labels(reason="idle").inc()
    metrics.audio_in_seconds.inc(0.1)
    metrics.first_audio_seconds.observe(0.25)

    text = metrics.exposition().decode()

    samples = {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["omniduplex_sessions_open", ()] == 2
    assert samples["omniduplex_sessions_closed_total", ("idle",)] == 1
    assert samples["omniduplex_audio_in_seconds_total", ()] == 0.1
    assert samples["omniduplex_first_audio_seconds_bucket", ("0.2",)] == 0
    assert samples["omniduplex_first_audio_seconds_bucket", ("0.3",)] == 1


def test_two_servers_do_not_share_their_metrics() -> None:
    first, second = ServerMetrics(CollectorRegistry()), ServerMetrics(CollectorRegistry())

    first.barge_ins.inc()

    assert b"omniduplex_barge_ins_total 1.0" in first.exposition()
    assert b"omniduplex_barge_ins_total 0.0" in second.exposition()


def test_no_metric_has_a_label_for_the_session() -> None:
    METRICS.sessions_refused.labels(code="server_busy")
    text = METRICS.exposition().decode()

    assert 'omniduplex_sessions_refused_total{code="server_busy"}' in text
    assert "session_id" not in text
