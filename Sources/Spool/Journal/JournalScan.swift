internal import Glibc

/// The lines that workers wrote into a job's file, for those who read a hundred thousand of them: nothing is decoded
/// that is not asked for. ``JobText`` judges a job, and takes thirty times as long.
package enum JournalScan {
  private static let heads = JournalKey.allCases.map { (key: $0, bytes: Array("\($0.rawValue): ".utf8)) }

  /// The lines of `bytes` that are not the journal's: what the job asks for. No reader finds a journal in them.
  package static func request(in bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var request: [UInt8] = []
    guard var start = bytes.baseAddress else { return request }
    let end = start + bytes.count
    while start < end {
      let next = memchr(start, 0x0A, end - start).map { UnsafeRawPointer($0) + 1 } ?? end
      let line = UnsafeRawBufferPointer(start: start, count: next - start)
      if !isJournal(line) { request.append(contentsOf: line) }
      start = next
    }
    return request
  }

  /// Whether any reader takes the line for one of the journal: ``JobText`` also behind blanks and a byte order mark,
  /// and without a blank behind the colon.
  private static func isJournal(_ line: UnsafeRawBufferPointer) -> Bool {
    let content = line.drop { isBlank($0) || [0xEF, 0xBB, 0xBF].contains($0) }
    return heads.contains { head in
      let name = head.bytes.dropLast()
      return content.starts(with: name) && !content.dropFirst(name.count).starts(with: "//".utf8)
    }
  }

  /// Hands each complete journal line of `bytes` to `body`, in order. A line with a zero did not happen, nor did those
  /// behind it (a power cut left it).
  package static func lines(_ bytes: UnsafeRawBufferPointer, _ body: (ScannedLine) -> Void) {
    guard var start = bytes.baseAddress else { return }
    let end = start + bytes.count
    while start < end, let newline = memchr(start, 0x0A, end - start) {
      let length = UnsafeRawPointer(newline) - start
      let line = UnsafeRawBufferPointer(start: start, count: length)
      if let head = heads.first(where: { $0.bytes.count <= length && memcmp($0.bytes, start, $0.bytes.count) == 0 }) {
        if memchr(start, 0, length) != nil { return }
        body(ScannedLine(key: head.key, value: UnsafeRawBufferPointer(rebasing: line[head.bytes.count...])))
      }
      start += length + 1
    }
  }
}

/// A journal line as ``JournalScan`` finds it. It is valid only as long as the bytes that it is from.
package struct ScannedLine {
  /// What it begins with.
  package let key: JournalKey
  fileprivate let value: UnsafeRawBufferPointer

  /// What follows the key; nil if it is malformed.
  package var fields: Fields? { Fields(parsing: String(decoding: value, as: UTF8.self)) }

  /// Its time, the first word of most lines; nil if it has none.
  package var time: Timestamp? {
    value.count >= 20 ? Timestamp(scanned: UnsafeRawBufferPointer(rebasing: value[..<20])) : nil
  }

  /// The number in the field `name`; nil if there is none, or it has more than 64 bits.
  package func number(_ name: StaticString) -> UInt64? {
    guard let digits = field(name), !digits.isEmpty else { return nil }
    var number: UInt64 = 0
    for byte in digits {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      let (tens, isTooLong) = number.multipliedReportingOverflow(by: 10)
      let (sum, isTooLarge) = tens.addingReportingOverflow(UInt64(byte - 0x30))
      if isTooLong || isTooLarge { return nil }
      number = sum
    }
    return number
  }

  /// Whether the line has the field `name`.
  package func has(_ name: StaticString) -> Bool { field(name) != nil }

  /// The text of the field `name`, as ``Fields`` reads it; nil if there is none, or it is malformed.
  package func text(_ name: StaticString) -> String? {
    guard let bytes = field(name) else { return nil }
    guard bytes.first == 0x22 else { return String(decoding: bytes, as: UTF8.self) }
    return Fields(parsing: "x=" + String(decoding: bytes, as: UTF8.self))?["x"]
  }

  /// The bytes of the value, with its quotes.
  private func field(_ name: StaticString) -> UnsafeRawBufferPointer? {
    var position = 0
    while position < value.count {
      let start = position
      while position < value.count, value[position] != 0x20, value[position] != 0x3D { position += 1 }
      guard position < value.count, value[position] == 0x3D else {
        position += 1
        continue
      }
      let isWanted =
        position - start == name.utf8CodeUnitCount
        && memcmp(value.baseAddress! + start, name.utf8Start, position - start) == 0
      position += 1
      let content = position
      if position < value.count, value[position] == 0x22 {
        position += 1
        while position < value.count, value[position] != 0x22 { position += value[position] == 0x5C ? 2 : 1 }
        position = min(position + 1, value.count)
      } else {
        while position < value.count, value[position] != 0x20 { position += 1 }
      }
      if isWanted { return UnsafeRawBufferPointer(rebasing: value[content..<position]) }
      position += 1
    }
    return nil
  }
}

extension Timestamp {
  /// `2026-12-01T00:00:00Z`. It does not look whether the month has the day.
  fileprivate init?(scanned bytes: UnsafeRawBufferPointer) {
    let shape: StaticString = "0000-00-00T00:00:00Z"
    for (index, byte) in bytes.enumerated() {
      let expected = shape.utf8Start[index]
      guard expected == 0x30 ? byte >= 0x30 && byte <= 0x39 : byte == expected else { return nil }
    }
    func number(_ start: Int, _ length: Int) -> Int32 {
      bytes[start..<start + length].reduce(0) { $0 * 10 + Int32($1 - 0x30) }
    }
    let (month, day) = (number(5, 2), number(8, 2))
    guard (1...12).contains(month), (1...31).contains(day), number(11, 2) < 24, number(14, 2) < 60, number(17, 2) < 60
    else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (number(0, 4) - 1900, month - 1, day)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (number(11, 2), number(14, 2), number(17, 2))
    self.init(seconds: Int64(timegm(&parts)))
  }
}
