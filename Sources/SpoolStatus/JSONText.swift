internal import Spool

/// A JSON value to be written (RFC 8259). A literal of a dictionary is an object.
package indirect enum JSONText: Sendable, ExpressibleByDictionaryLiteral {
  case null
  case number(String)
  case bool(Bool)
  case string(String)
  case array([JSONText])
  /// Members, written in this order.
  case object([(String, JSONText)])

  package init(dictionaryLiteral members: (String, JSONText)...) { self = .object(members) }

  package static func count(_ value: (some BinaryInteger)?) -> JSONText { value.map { .number(String($0)) } ?? .null }
  package static func optional(_ value: (some CustomStringConvertible)?) -> JSONText {
    value.map { .string($0.description) } ?? .null
  }

  /// Bytes per second.
  static func rate(_ value: Double?) -> JSONText { count(value.map { Int64(min($0, 1e18)) }) }

  package var text: String {
    switch self {
    case .null: "null"
    case .number(let digits): digits
    case .bool(let value): value ? "true" : "false"
    case .string(let value): Self.quoted(value)
    case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
    case .object(let members): "{" + members.map { "\(Self.quoted($0)):\($1.text)" }.joined(separator: ",") + "}"
    }
  }

  /// A string (RFC 8259 section 7). Characters that control a terminal or the direction of text are escaped as well.
  package static func quoted(_ value: String) -> String {
    doubleQuoted(value) { "\\u" + hexadecimal(UInt64($0.value), digits: 4) }
  }
}
