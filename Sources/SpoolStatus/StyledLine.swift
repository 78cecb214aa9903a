/// How text can be shown on an output.
package struct Look: Sendable {
  /// Whether colours may be used (https://no-color.org).
  package var isColored: Bool
  /// Replaces what was left out.
  package var ellipsis: String

  /// - Parameter isUnicode: whether the output can show characters beyond ASCII (locale(7)).
  package init(isColored: Bool, isUnicode: Bool = true) {
    self.isColored = isColored
    ellipsis = isUnicode ? "…" : "~"
  }
}

/// Select Graphic Rendition parameters (ECMA-48 section 8.3.117).
package enum Ink: String, Sendable {
  case bold = "1"
  case faint = "2"
  case red = "31"
  case green = "32"
  case yellow = "33"
  case inverse = "7"
}

/// A line for a terminal. Its width does not include the colour codes.
package struct StyledLine: Sendable {
  /// With escape sequences for colors, if the terminal has colors.
  package private(set) var text = ""
  /// Columns on the terminal.
  package private(set) var width = 0
  private let isColored: Bool

  /// An empty line.
  package init(_ look: Look) { isColored = look.isColored }

  /// - Parameter plain: text without control characters.
  package init(_ plain: String, _ look: Look, _ ink: Ink? = nil) {
    self.init(look)
    append(plain, ink)
  }

  /// Adds text without control characters.
  package mutating func append(_ plain: String, _ ink: Ink? = nil) {
    width += displayWidth(plain)
    if isColored, let ink, !plain.isEmpty {
      text += "\u{1B}[\(ink.rawValue)m\(plain)\u{1B}[0m"
    } else {
      text += plain
    }
  }

  /// The text without spaces at its end, which could wrap.
  package var trimmed: String {
    var text = text
    while text.utf8.last == 0x20 { text.unicodeScalars.removeLast() }
    return text
  }
}
