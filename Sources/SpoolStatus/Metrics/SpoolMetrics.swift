internal import Spool

/// What a spool's metrics are made of. Pure.
package struct SpoolMetrics: Sendable {
  let snapshot: SpoolSnapshot
  let totals: JournalTotals
  /// Seconds since the epoch; nil if no job is in `new/` or `urgent/`.
  var oldestWaiting: Int64?
  /// Seconds since the epoch; nil if there is no receipt.
  var lastDone: Int64?
  var free: [(place: String, bytes: UInt64)] = []

  package func text(_ format: MetricFormat) -> String {
    (jobs + places + counters).map { $0.text(format, of: escaped(snapshot.location)) }.joined()
      + (format == .openMetrics ? "# EOF\n" : "")
  }

  private func family(
    _ name: String, isCounter: Bool = false, _ help: String, by label: String?,
    _ samples: [(label: String, value: String)]
  ) -> MetricFamily {
    MetricFamily(name: "spoolrun_" + name, isCounter: isCounter, help: help, label: label, samples: samples)
  }

  private func family(
    _ name: String, isCounter: Bool = false, _ help: String, _ value: (some CustomStringConvertible)?
  ) -> MetricFamily {
    family(name, isCounter: isCounter, help, by: nil, value.map { [("", $0.description)] } ?? [])
  }

  private var jobs: [MetricFamily] {
    [
      family(
        "jobs", "Jobs by state, as spoolrun status counts them.", by: "state",
        JobState.allCases.map { ($0.rawValue, "\(snapshot.count($0))") }),
      family("stored_bytes", "Size of the data of all jobs that have begun and are not done.", snapshot.stored),
      family(
        "rate_bytes_per_second", "Rate of the running jobs, each on average since its attempt began.",
        (snapshot.rate ?? 0).rounded()),
      family(
        "oldest_waiting_seconds",
        "For how long the job that waits longest has been in new or urgent; 0 if none is there.",
        max(0, oldestWaiting.map { snapshot.time.seconds - $0 } ?? 0)),
      family(
        "next_attempt_timestamp_seconds",
        "When the next attempt after a failure is due, since the epoch; absent if no job waits for one.",
        snapshot.jobs[.retrying]?.first?.next.map { max(0, $0.seconds) }),
      family(
        "last_done_timestamp_seconds", "Time of the latest receipt, since the epoch; absent if there is none.",
        lastDone.map { max(0, $0) }),
    ]
  }

  /// Causes that a worker may name in its file (spool.5, WORKERS).
  private static let causes = ["gate", "space", "output", "proxy", "server", "network"]

  private var places: [MetricFamily] {
    let alive = snapshot.workers.filter(\.isAlive)
    let resting = snapshot.restingServers
    let waits = alive.flatMap { Set(($0.report?.waits ?? []).map(\.cause)) }
    return [
      family(
        "workers", "Workers; silent are those that have given no sign of life for the lease, or whose process is gone.",
        by: "state", [("alive", "\(alive.count)"), ("silent", "\(snapshot.workers.count - alive.count)")]),
      family(
        "waiting_workers", "Workers that could run jobs, but wait for something else, by its kind.", by: "cause",
        Self.causes.map { cause in (cause, "\(waits.count { $0 == cause })") }),
      family(
        "resting_servers", "Servers and proxies that rest, by the cause.", by: "cause",
        ["asked", "broken", "unreachable"].map { cause in (cause, "\(resting.count { $0.rest.cause == cause })") }),
      family(
        "longest_rest_seconds", "For how long the server or proxy rests that has rested longest; 0 if none rests.",
        max(0, resting.map { snapshot.time.seconds - $0.rest.since.seconds }.max() ?? 0)),
      family(
        "free_bytes", "Space that is free for this user, in the spool and in the output directory.", by: "place",
        free.map { ($0.place, "\($0.bytes)") }),
    ]
  }

  private var counters: [MetricFamily] {
    let prefix = JournalTotals.failed
    let codes = Set(totals.counts.keys.filter { $0.begins(with: prefix) }.map { String($0.dropFirst(prefix.count)) })
    let fall = "; less after jobs or receipts were removed, but not in a --textfile."
    return [
      family("bytes", isCounter: true, "Bytes received over the network" + fall, totals[JournalTotals.bytes]),
      family("done", isCounter: true, "Jobs that were done" + fall, totals[JournalTotals.done]),
      family("given_up", isCounter: true, "Jobs that were given up" + fall, totals[JournalTotals.givenUp]),
      family(
        "failures", isCounter: true, "Attempts that failed, by the code of spool(5)" + fall, by: "code",
        codes.union(JournalTotals.codes).sorted().map { ($0, "\(totals[prefix + $0])") }),
    ]
  }
}

package enum MetricFormat: Sendable {
  /// OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/).
  case openMetrics
  /// Prometheus's text format 0.0.4, which node_exporter's textfile collector reads: there a counter's comments have
  /// its whole name, and there is neither `# UNIT` nor `# EOF`.
  case text
}

private struct MetricFamily {
  /// Without the `_total` of counters.
  let name: String
  let isCounter: Bool
  let help: String
  /// The name of the label by which the samples differ; nil where there is only one.
  let label: String?
  /// The values of labels are of any origin, without control characters.
  let samples: [(label: String, value: String)]

  private static let units = ["bytes", "seconds", "bytes_per_second"]

  /// - Returns: nothing of a family without samples.
  func text(_ format: MetricFormat, of spool: String) -> String {
    if samples.isEmpty { return "" }
    let sampleName = isCounter ? name + "_total" : name
    let title = format == .openMetrics ? name : sampleName
    var text = "# HELP \(title) \(Self.escaped(help, isQuoted: format == .openMetrics))\n"
    text += "# TYPE \(title) \(isCounter ? "counter" : "gauge")\n"
    if format == .openMetrics, let unit = Self.units.first(where: { name.ends(with: "_" + $0) }) {
      text += "# UNIT \(title) \(unit)\n"
    }
    for sample in samples {
      let named = [("spool", spool)] + (label.map { [($0, sample.label)] } ?? [])
      let labels = named.map { "\($0)=\"\(Self.escaped($1, isQuoted: true))\"" }
      text += "\(sampleName){\(labels.joined(separator: ","))} \(sample.value)\n"
    }
    return text
  }

  /// All three characters that have to be escaped, in both formats; in a HELP of the text format not the quote.
  private static func escaped(_ text: String, isQuoted: Bool) -> String {
    text.replacing { ["\\": "\\\\", "\n": "\\n", "\"": isQuoted ? "\\\"" : "\""][$0] }
  }
}
