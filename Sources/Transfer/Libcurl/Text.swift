internal import Glibc

/// `1*DIGIT` as a number; nil for anything else, a sign or a blank included, and on overflow.
func decimal(_ digits: some Collection<UInt8>) -> UInt64? {
  digits.allSatisfy(isDigit) ? UInt64(String(decoding: digits, as: UTF8.self)) : nil
}

func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
func isLowerCase(_ byte: UInt8) -> Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte }

func lowercasedASCII(_ byte: UInt8) -> UInt8 { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte }

func lowercasedASCII(_ text: some StringProtocol) -> String {
  String(decoding: text.utf8.map(lowercasedASCII), as: UTF8.self)
}

/// Without its percent escapes (RFC 3986, 2.1). A percent sign that begins none stays, and makes the text invalid.
func percentDecoded(_ text: some Collection<UInt8>) -> (bytes: [UInt8], isValid: Bool) {
  var (bytes, isValid, rest) = ([UInt8](), true, text[...])
  while let byte = rest.popFirst() {
    bytes.append(byte)
    guard byte == UInt8(ascii: "%") else { continue }
    let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    if digits.count == 2 {
      bytes[bytes.count - 1] = UInt8(digits[0] << 4 | digits[1])
      rest = rest.dropFirst(2)
    } else {
      isValid = false
    }
  }
  return (bytes, isValid)
}

/// `bytes` as text; where they are no UTF-8, with percent escapes for those beyond ASCII, as a URL has them.
func percentEncoded(_ bytes: some Collection<UInt8>) -> String {
  if let text = String(validating: bytes, as: UTF8.self) { return text }
  return escaped(bytes, by: "%", uppercase: true) { $0 >= 0x80 }
}

private func escaped(
  _ bytes: some Collection<UInt8>, by mark: String, uppercase: Bool, where isEscaped: (UInt8) -> Bool
) -> String {
  bytes.reduce(into: "") { text, byte in
    if isEscaped(byte) {
      text += mark + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: uppercase)
    } else {
      text.unicodeScalars.append(Unicode.Scalar(byte))
    }
  }
}

func uppercasedASCII(_ byte: UInt8) -> UInt8 { UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte ? byte & ~0x20 : byte }

/// A blank or a tab (RFC 9110, 5.6.3).
func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

/// Without the blanks and tabs around it (OWS, RFC 9110, 5.6.3).
func trimmed(_ text: some StringProtocol) -> String { String(decoding: trimmed(Substring(text).utf8), as: UTF8.self) }

func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes.SubSequence {
  var rest = bytes[...]
  while let byte = rest.first, isBlank(byte) { rest.removeFirst() }
  while let byte = rest.last, isBlank(byte) { rest.removeLast() }
  return rest
}

/// Backslash escapes for everything but printable ASCII: the texts of libcurl and OpenSSL may quote what a server sent.
func printable(_ text: String) -> String {
  escaped(text.utf8, by: "\\x", uppercase: false) { !(0x20...0x7e ~= $0) }
}

/// A time of ``monotonicMilliseconds()``, or a span, in milliseconds.
typealias Milliseconds = Int64

/// Does not count the time that the machine slept, in which no server could send anything.
func monotonicMilliseconds() -> Milliseconds {
  var time = timespec()
  // Fails only for a clock that the system does not have; every Linux has this one (clock_gettime(2)).
  let result = clock_gettime(CLOCK_MONOTONIC, &time)
  precondition(result == 0, "clock_gettime")
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

/// Seconds since 1970-01-01T00:00:00Z (time(2)), to compare with the dates in header fields.
func unixSeconds() -> Int64 { Int64(time(nil)) }
