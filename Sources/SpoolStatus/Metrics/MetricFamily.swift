internal import Spool

/// What metrics can be written as.
package enum MetricFormat: Sendable {
  /// OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/).
  case openMetrics
  /// Prometheus's text format 0.0.4, which node_exporter's textfile collector reads: there a counter's comments have
  /// its whole name, and there is neither `# UNIT` nor `# EOF`.
  case text
}

/// Samples of one name. Pure.
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

  /// The lines of the family.
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
