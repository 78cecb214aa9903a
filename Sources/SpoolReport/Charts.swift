internal import Spool
internal import SpoolStatus

/// Inline SVG without any text of its own: labels are HTML beside it, so they keep their size when the drawing is
/// stretched to the width of the page. Pure.
enum Charts {
  /// Bars over the time, with the highest value and the ends of the axis written beside them.
  /// - Parameters:
  ///   - shown: writes a value.
  ///   - kind: the class that the bars are coloured by.
  static func bars(_ values: [UInt64], _ axis: TimeAxis, kind: String, shown: (UInt64) -> String) -> HTMLText {
    let most = values.max() ?? 0
    let middle = axis.count / 2
    let ticks: [HTMLText] = [0, middle, axis.count - 1].reduce(into: []) { ticks, index in
      let label: HTMLText = "<span>\(axis.label(index))</span>"
      if ticks.last?.description != label.description { ticks.append(label) }
    }
    return """
      <div class="chart" aria-hidden="true"><div class="most">\(shown(most))</div>
      <svg class="bars \(kind)" viewBox="0 0 \(max(1, values.count)) 100" preserveAspectRatio="none">\
      <path d="\(path(values, height: 100))"/></svg>
      <div class="ticks">\(ticks)</div></div>

      """
  }

  /// The same, small enough for a cell of a table.
  /// - Parameter most: the value that is as high as the drawing.
  static func spark(_ values: [UInt64], most: UInt64, kind: String) -> HTMLText {
    """
    <svg class="spark \(kind)" viewBox="0 0 \(max(1, values.count)) 20" preserveAspectRatio="none" aria-hidden="true">\
    <path d="\(path(values, height: 20, most: most))"/></svg>
    """
  }

  /// A bar that fills `part` of a cell, from 0 to 1.
  static func meter(_ part: Double, kind: String = "plain") -> HTMLText {
    let width = Int((min(1, max(0, part)) * 100).rounded())
    return """
      <svg class="meter \(kind)" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">\
      <path d="M0 0h\(max(1, width))v10H0z"/></svg>
      """
  }

  /// A bar of the width 1 for each value; one that is not 0 is at least 2 % high.
  private static func path(_ values: [UInt64], height: Int, most: UInt64? = nil) -> HTMLText {
    let most = max(1, most ?? values.max() ?? 1)
    var path: HTMLText = ""
    for (index, value) in values.enumerated() where value > 0 {
      let bar = max(2 * height / 100, Int(Double(height) * min(1, Double(value) / Double(most))))
      path += "M\(index) \(height)v-\(max(1, bar))h.9v\(max(1, bar))z"
    }
    return path
  }

  /// The attempts of a job: a bar for each, a line for the time between them, and a mark behind one that failed.
  /// - Parameter seconds: what the whole width stands for.
  static func waterfall(_ job: JobRecord, seconds: Int64) -> HTMLText {
    guard let first = job.attempts.first else { return "" }
    let scale = 1000 / Double(max(1, seconds))
    func x(_ time: Int64) -> Int { Int((Double(time - first.begun.seconds) * scale).rounded()) }
    var shapes: HTMLText = """
      <path class="pause" d="M0 9h\(max(1, x(first.begun.seconds + job.seconds)))v2H0z"/>
      """
    for attempt in job.attempts.suffix(mostAttempts) {
      let (start, end) = (x(attempt.begun.seconds), x(attempt.ended.seconds))
      shapes += "<path d=\"M\(start) 4h\(max(3, end - start))v12h-\(max(3, end - start))z\"/>"
      if case .failed = attempt.end { shapes += "<path class=\"bad\" d=\"M\(max(start + 3, end)) 0h4v20h-4z\"/>" }
    }
    return """
      <svg class="fall" viewBox="0 0 1010 20" preserveAspectRatio="none" aria-hidden="true">\(shapes)</svg>
      """
  }

  /// More attempts of a job are not drawn.
  private static let mostAttempts = 200
}

/// Text that is safe in HTML, in content and in quoted attributes.
struct HTMLText: ExpressibleByStringInterpolation, CustomStringConvertible {
  private(set) var description: String

  /// Takes literals as they are, escapes what is inserted as a `String`, and takes what is HTML already as it is.
  struct StringInterpolation: StringInterpolationProtocol {
    var text = ""

    init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }
    mutating func appendLiteral(_ literal: String) { text += literal }
    mutating func appendInterpolation(_ value: some StringProtocol) { text += HTMLText.escaped(value) }
    mutating func appendInterpolation(_ value: some BinaryInteger) { text += "\(value)" }
    mutating func appendInterpolation(_ value: HTMLText) { text += value.description }
    mutating func appendInterpolation(_ values: [HTMLText]) { for value in values { text += value.description } }
  }

  /// Text that is HTML already.
  init(html: String) { description = html }
  init(stringLiteral value: String) { description = value }
  init(stringInterpolation: StringInterpolation) { description = stringInterpolation.text }

  static func += (left: inout HTMLText, right: HTMLText) { left.description += right.description }

  /// Control characters, and those that change the direction of text, become visible; then the five characters of HTML
  /// are written as references.
  private static func escaped(_ text: some StringProtocol) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      // What was escaped once has its backslashes already.
      case "\\": result += "\\"
      case _ where isUnsafeForDisplay(scalar): result += "\\u{" + hexadecimal(UInt64(scalar.value), digits: 4) + "}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

/// Numbers and names as the report shows them.
enum Shown {
  /// The longest text of a stranger that is shown, in characters.
  private static let longest = 300

  static func name(_ name: FileName) -> String { name.display }
  static func text(_ text: String) -> String { text.count > longest ? text.prefix(longest) + "…" : text }
  static func bytes(_ bytes: UInt64) -> String { shortBytes(bytes) }
  static func rate(_ rate: Double?) -> String { rate.map { shortRate($0) } ?? "–" }
  static func seconds(_ seconds: Int64) -> String { shortDuration(seconds) }
  /// `2026-11-21 03:00`, in UTC.
  static func time(_ time: Timestamp) -> String {
    let text = time.description
    return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5))"
  }
  /// `12,345`.
  static func number(_ number: some BinaryInteger) -> String {
    let digits = Array(String(number))
    return digits.indices.reduce(into: "") { text, index in
      if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
      text.append(digits[index])
    }
  }

  /// `12 jobs`, `1 job`.
  static func count(_ number: some BinaryInteger, _ noun: String) -> String {
    "\(Self.number(number)) \(noun)\(number == 1 ? "" : "s")"
  }
}
