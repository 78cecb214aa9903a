internal import Spool

/// What a spool's metrics are made of. Pure.
package struct SpoolMetrics: Sendable {
  /// Of the same time.
  let snapshot: SpoolSnapshot
  let totals: JournalTotals
  /// Seconds since the epoch; nil if no job is in `new/` or `urgent/`.
  var oldestWaiting: Int64?
  /// Seconds since the epoch; nil if there is no receipt.
  var lastDone: Int64?
  var free: [(place: String, bytes: UInt64)] = []

  package func text(_ format: MetricFormat) -> String {
    (jobs + places + counters).filter { !$0.samples.isEmpty }.map { $0.text(format) }.joined()
      + (format == .openMetrics ? "# EOF\n" : "")
  }

  private var spool: [(name: String, value: String)] { [("spool", escaped(snapshot.location))] }

  private func sample(_ value: MetricFamily.Value, _ labels: (name: String, value: String)...) -> MetricFamily.Sample {
    .init(labels: spool + labels, value: value)
  }

  private func count(_ number: Int) -> MetricFamily.Value { .count(UInt64(max(0, number))) }

  private var jobs: [MetricFamily] {
    let next = snapshot.jobs[.retrying]?.first?.next
    return [
      MetricFamily(
        name: "spoolrun_jobs", kind: .gauge, help: "Jobs by state, as spoolrun status counts them.",
        samples: JobState.allCases.map { sample(count(snapshot.count($0)), ("state", $0.rawValue)) }),
      MetricFamily(
        name: "spoolrun_stored_bytes", kind: .gauge, unit: "bytes",
        help: "Size of the data of all jobs that have begun and are not done.",
        samples: [sample(.count(snapshot.stored))]),
      MetricFamily(
        name: "spoolrun_rate_bytes_per_second", kind: .gauge, unit: "bytes_per_second",
        help: "Rate of the running jobs, each on average since its attempt began.",
        samples: [sample(.real((snapshot.rate ?? 0).rounded()))]),
      MetricFamily(
        name: "spoolrun_oldest_waiting_seconds", kind: .gauge, unit: "seconds",
        help: "For how long the job that waits longest has been in new or urgent; 0 if none is there.",
        samples: [sample(count(oldestWaiting.map { Int(clamping: snapshot.time.seconds - $0) } ?? 0))]),
      MetricFamily(
        name: "spoolrun_next_attempt_timestamp_seconds", kind: .gauge, unit: "seconds",
        help: "When the next attempt after a failure is due, since the epoch; absent if no job waits for one.",
        samples: next.map { [sample(count(Int(clamping: $0.seconds)))] } ?? []),
      MetricFamily(
        name: "spoolrun_last_done_timestamp_seconds", kind: .gauge, unit: "seconds",
        help: "Time of the latest receipt, since the epoch; absent if there is none.",
        samples: lastDone.map { [sample(count(Int(clamping: $0)))] } ?? []),
    ]
  }

  /// Causes that a worker may name in its file (spool.5, WORKERS).
  private static let causes = ["gate", "space", "output", "proxy", "server", "network"]

  private var places: [MetricFamily] {
    let alive = snapshot.workers.filter(\.isAlive)
    let waits = alive.flatMap { Set(($0.report?.waits ?? []).map(\.cause)) }
    return [
      MetricFamily(
        name: "spoolrun_workers", kind: .gauge,
        help: "Workers; silent are those that have given no sign of life for the lease, or whose process is gone.",
        samples: [
          sample(count(alive.count), ("state", "alive")),
          sample(count(snapshot.workers.count - alive.count), ("state", "silent")),
        ]),
      MetricFamily(
        name: "spoolrun_waiting_workers", kind: .gauge,
        help: "Workers that could run jobs, but wait for something else, by its kind.",
        samples: Self.causes.map { cause in sample(count(waits.count { $0 == cause }), ("cause", cause)) }),
      MetricFamily(
        name: "spoolrun_resting_servers", kind: .gauge, help: "Servers and proxies that rest, by the cause.",
        samples: ["asked", "broken", "unreachable"].map { cause in
          sample(count(snapshot.servers.count { $0.rest.cause == cause }), ("cause", cause))
        }),
      MetricFamily(
        name: "spoolrun_longest_rest_seconds", kind: .gauge, unit: "seconds",
        help: "For how long the server or proxy rests that has rested longest; 0 if none rests.",
        samples: [sample(count(Int(snapshot.servers.map { snapshot.time.seconds - $0.rest.since.seconds }.max() ?? 0)))]
      ),
      MetricFamily(
        name: "spoolrun_free_bytes", kind: .gauge, unit: "bytes",
        help: "Space that is free for this user, in the spool and in the output directory.",
        samples: free.map { sample(.count($0.bytes), ("place", $0.place)) }),
    ]
  }

  private var counters: [MetricFamily] {
    let prefix = JournalTotals.failed
    let codes = Set(totals.counts.keys.filter { $0.begins(with: prefix) }.map { String($0.dropFirst(prefix.count)) })
    let all = codes.union(JournalTotals.codes).sorted()
    func counter(_ name: String, _ help: String, _ total: String) -> MetricFamily {
      MetricFamily(name: name, kind: .counter, help: help, samples: [sample(.count(totals[total]))])
    }
    var bytes = counter("spoolrun_bytes", "Bytes received over the network.", JournalTotals.bytes)
    bytes.unit = "bytes"
    return [
      bytes,
      counter("spoolrun_done", "Jobs that were done.", JournalTotals.done),
      counter("spoolrun_given_up", "Jobs that were given up.", JournalTotals.givenUp),
      MetricFamily(
        name: "spoolrun_failures", kind: .counter, help: "Attempts that failed, by the code of spool(5).",
        samples: all.map { sample(.count(totals[prefix + $0]), ("code", $0)) }),
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

struct MetricFamily {
  enum Kind: String { case gauge, counter }

  enum Value {
    case count(UInt64)
    case real(Double)

    var text: String {
      switch self {
      case .count(let number): "\(number)"
      case .real(let number): number.isFinite ? "\(number)" : "NaN"
      }
    }
  }

  struct Sample {
    /// Names of our own; values of any origin, without control characters.
    let labels: [(name: String, value: String)]
    let value: Value
  }

  /// Without the `_total` of counters.
  let name: String
  let kind: Kind
  /// What ``name`` ends in, such as `seconds`.
  var unit: String?
  let help: String
  var samples: [Sample]

  private var sampleName: String { kind == .counter ? "\(name)_total" : name }

  func text(_ format: MetricFormat) -> String {
    let title = format == .openMetrics ? name : sampleName
    var text = "# HELP \(title) \(Self.escaped(help, isQuoted: format == .openMetrics))\n"
    text += "# TYPE \(title) \(kind.rawValue)\n"
    if format == .openMetrics, let unit { text += "# UNIT \(title) \(unit)\n" }
    for sample in samples {
      let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value, isQuoted: true))\"" }
      text += "\(sampleName){\(labels.joined(separator: ","))} \(sample.value.text)\n"
    }
    return text
  }

  /// All three characters that have to be escaped, in both formats; in a HELP of the text format not the quote.
  private static func escaped(_ text: String, isQuoted: Bool) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\"" where isQuoted: result += "\\\""
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
