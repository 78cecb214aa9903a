internal import Spool
internal import SpoolStatus

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

  static func text(_ text: String) -> String { text.count > longest ? text.prefix(longest) + "…" : text }
  static func rate(_ rate: Double?) -> String { rate.map { shortRate($0) } ?? "–" }
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

/// A table of the report, which can be scrolled where the page is too narrow for it. Pure.
struct ReportTable {
  struct Column {
    enum Kind: String {
      case text, number, time
      /// What other columns say.
      case drawing
    }

    let title: String
    let kind: Kind

    init(_ title: String, _ kind: Kind = .text) { (self.title, self.kind) = (title, kind) }
  }

  /// What the table is about. It is unique on the page.
  let caption: String
  let columns: [Column]
  let rows: [[HTMLText]]
  /// What a table without rows says instead.
  var otherwise = "None."

  var html: HTMLText {
    if rows.isEmpty { return "<p class=\"none\">\(caption): \(otherwise)</p>\n" }
    // A region that can be scrolled has to be reached by the keyboard (WCAG 2.1.1).
    let titles: [HTMLText] = columns.map { "<th scope=\"col\"\(Self.style($0))>\($0.title)</th>" }
    let body: [HTMLText] = rows.map { row in
      let cells: [HTMLText] = zip(columns, row).dropFirst().map { "<td\(Self.style($0))>\($1)</td>" }
      return "<tr><th scope=\"row\"\(Self.style(columns[0]))>\(row[0])</th>\(cells)</tr>\n"
    }
    return """
      <div class="scroll" tabindex="0" role="region" aria-label="\(caption)"><table><caption>\(caption)</caption>
      <thead><tr>\(titles)</tr></thead>
      <tbody>
      \(body)</tbody></table></div>

      """
  }

  private static func style(_ column: Column) -> HTMLText {
    column.kind == .text ? "" : " class=\"\(column.kind.rawValue)\""
  }
}
