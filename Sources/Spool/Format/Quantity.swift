package struct Defect: Error, Sendable, Equatable, CustomStringConvertible {
  /// Counted from 1; nil when it concerns the whole file.
  package let line: Int?
  /// Says what to do about it; free of control bytes and of header values.
  package let reason: String

  package init(line: Int?, reason: String) { (self.line, self.reason) = (line, reason) }

  package var description: String { line.map { "line \($0): \(reason)" } ?? reason }
}

/// Why a key's value cannot be read. The text follows the key's name.
struct InvalidValue: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

// Numbers, amounts and times as people write them in jobs and options.

/// Digits only, without a sign; nil where the number has more than 64 bits.
package func decimal(_ text: some StringProtocol) -> UInt64? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return UInt64(text)
}

/// The same, up to the longest file (off_t): nothing that is added to it overflows.
package func amount(_ text: some StringProtocol) -> UInt64? {
  decimal(text).flatMap { $0 <= UInt64(Int64.max) ? $0 : nil }
}

/// A number of bytes, with k, M, G or T behind it for powers of 1024, as curl and wget count them.
package func byteCount(_ text: some StringProtocol) -> UInt64? {
  let text = Substring(text)
  let power = ["k": UInt64(10), "m": 20, "g": 30, "t": 40][text.suffix(1).lowercasedASCII]
  return product(text, power.map { 1 << $0 }).flatMap { $0 <= UInt64(Int64.max) ? $0 : nil }
}

/// - Parameter unit: what the last character stands for; nil where it is a digit.
private func product(_ text: Substring, _ unit: UInt64?) -> UInt64? {
  guard let unit else { return decimal(text) }
  guard let number = decimal(text.dropLast()) else { return nil }
  let (product, overflow) = number.multipliedReportingOverflow(by: unit)
  return overflow ? nil : product
}

/// `bytes` with the largest unit that keeps it exact; ``byteCount(_:)`` reads it back.
func byteCountText(_ bytes: UInt64) -> String {
  text(bytes, [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("k", 1 << 10)])
}

/// `90`, `90s`, `5m`, `2h` or `7d` in seconds, from 1 s to 365 days.
/// - Parameter most: another maximum, in seconds.
/// - Parameter needsUnit: whether a bare number is refused: some would read it as days.
package func duration(_ text: some StringProtocol, most: UInt64 = 31_536_000, needsUnit: Bool = false) -> Int? {
  let text = Substring(text)
  let unit = ["s": UInt64(1), "m": 60, "h": 3600, "d": 86_400][String(text.suffix(1))]
  if needsUnit, unit == nil { return nil }
  return product(text, unit).flatMap { (1...most).contains($0) ? Int($0) : nil }
}

/// `seconds` with the largest unit that keeps it exact; ``duration(_:)`` reads it back.
package func durationText(_ seconds: Int) -> String {
  text(UInt64(seconds), [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)])
}

private func text(_ amount: UInt64, _ units: [(name: String, size: UInt64)]) -> String {
  let unit = amount == 0 ? nil : units.first { amount.isMultiple(of: $0.size) }
  return unit.map { "\(amount / $0.size)\($0.name)" } ?? "\(amount)"
}
