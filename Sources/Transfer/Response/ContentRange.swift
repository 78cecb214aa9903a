/// A `Content-Range` field with the unit `bytes` (RFC 9110, 14.4).
///
/// | field | first | last | total |
/// |---|---|---|---|
/// | `bytes 0-99/100` | 0 | 99 | 100 |
/// | `bytes 0-99/*` | 0 | 99 | unknown |
/// | `bytes */100` (with status 416) | none | none | 100 |
package struct ContentRange: Equatable, Sendable {
  /// First byte of the range, counted from 0; nil for an unsatisfied range.
  package let first: UInt64?
  /// Last byte of the range, itself included; nil for an unsatisfied range.
  package let last: UInt64?
  /// Length of the whole representation in bytes; nil if the server says `*`.
  package let total: UInt64?

  /// Nil for what the grammar does not allow, for numbers that no file reaches (off_t), and for contradictions (last
  /// before first, range beyond total). A resumed file depends on this field, so nothing is guessed.
  package init?(_ field: String) {
    let bytes = Array(field.utf8)
    let unit = Array("bytes ".utf8)
    guard bytes.count > unit.count,
      zip(bytes, unit).allSatisfy({ lowercasedASCII($0) == $1 })
    else { return nil }
    let parts = bytes[unit.count...].split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }

    let star = [UInt8(ascii: "*")]
    func position(_ digits: ArraySlice<UInt8>) -> UInt64? { decimal(digits).flatMap { $0 < Int64.max ? $0 : nil } }
    let total = position(parts[1])
    guard total != nil || parts[1].elementsEqual(star) else { return nil }

    if parts[0].elementsEqual(star) {
      guard total != nil else { return nil }
      (first, last) = (nil, nil)
    } else {
      let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      guard ends.count == 2, let first = position(ends[0]), let last = position(ends[1]),
        last >= first
      else { return nil }
      if let total, last >= total { return nil }
      (self.first, self.last) = (first, last)
    }
    self.total = total
  }
}
