internal import Glibc

/// A receipt that `clean --archive` has moved out of `done/`: a line of an archive (spool.5, ARCHIVE). Pure.
package struct ArchivedReceipt: Sendable, Equatable {
  package let name: FileName
  /// When the receipt was last modified.
  package let modified: Timestamp
  /// The receipt as it was, to the byte.
  package let bytes: [UInt8]

  /// What an archive begins with: the names of the columns. A line that begins with `#` is no receipt.
  static let head = Array("#done\tname\toutput\tsize\tdigests\turl\tmodified\treceipt\n".utf8)
  /// The most bytes that a line may have: those of the largest job, each of them escaped, and the other columns.
  static let longest = 4 * Spool.maximumJobFile + (1 << 20)
  private static let columns = 8
  /// RFC 3339 has no year with five digits. The times of files do.
  private static let times: ClosedRange<Int64> = 0...253_402_300_799

  /// Adds the line of a receipt to `lines`.
  /// - Parameters:
  ///   - bytes: the file in `done/`.
  ///   - modified: its time of modification, in seconds since the epoch.
  /// - Returns: the month of the receipt; nil if the file is none, and then nothing is added.
  package static func append(
    _ name: FileName, _ bytes: UnsafeRawBufferPointer, modified: Int64, to lines: inout [UInt8]
  ) -> ArchiveMonth? {
    let facts = ReceiptFacts(bytes)
    guard let time = facts.time, let output = facts.output else { return nil }
    let clamped = Timestamp(seconds: min(max(modified, times.lowerBound), times.upperBound))
    let digests = facts.digests.isEmpty ? nil : facts.digests.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    let columns = [
      "\(time)", name.display, escaped(output), facts.size.map { "\($0)" } ?? "-", digests.map { escaped($0) } ?? "-",
      facts.url.map { escaped(shownURL($0)) } ?? "-", "\(clamped)",
    ]
    for column in columns {
      lines += column.utf8
      lines.append(0x09)
    }
    ArchiveText.append(bytes, to: &lines)
    lines.append(0x0A)
    return ArchiveMonth(time)
  }

  /// Reads a line, without its newline. Columns that a later version adds are skipped.
  /// - Parameter names: a line of another name is not decoded; nil for all.
  /// - Throws: ``Defect`` if it is no line of an archive.
  package static func read(
    _ line: UnsafeRawBufferPointer, named names: Set<FileName>? = nil
  ) throws(Defect) -> ArchivedReceipt? {
    if line.first == UInt8(ascii: "#") { return nil }
    let parts = line.split(separator: 0x09, maxSplits: columns, omittingEmptySubsequences: false)
    guard parts.count >= columns, let name = ArchiveText.decoded(parts[1]).map({ FileName($0) }), name.isEntry,
      !name.bytes.contains(0), let modified = Timestamp(String(decoding: parts[6], as: UTF8.self))
    else { throw Defect(line: nil, reason: "it is no line of an archive") }
    if let names, !names.contains(name) { return nil }
    guard let bytes = ArchiveText.decoded(parts[7]) else {
      throw Defect(line: nil, reason: "its last column cannot be read")
    }
    return ArchivedReceipt(name: name, modified: modified, bytes: bytes)
  }
}

extension ArchivedReceipt {
  package var request: JobRequest {
    bytes.withUnsafeBytes { JournalScan.request(in: $0) }.withUnsafeBytes { JobText($0) }.request
  }
}

/// Receipts that were read in `done/`, so that one that was archived since is not counted twice.
package struct SeenReceipts {
  private var hashes: Set<Int> = []

  package init() {}

  /// Takes note of a file in `done/`.
  package mutating func insert(_ name: FileName, _ bytes: UnsafeRawBufferPointer) {
    hashes.insert(Self.hash(name, bytes))
  }

  /// Whether it was in `done/`.
  package func contains(_ receipt: ArchivedReceipt) -> Bool {
    !hashes.isEmpty && receipt.bytes.withUnsafeBytes { hashes.contains(Self.hash(receipt.name, $0)) }
  }

  private static func hash(_ name: FileName, _ bytes: UnsafeRawBufferPointer) -> Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(bytes: bytes)
    return hasher.finalize()
  }
}

/// The month of a receipt in UTC, which its archive is named by.
package struct ArchiveMonth: Hashable, Comparable {
  /// As in `2026-11`.
  private let text: String

  init(_ time: Timestamp) { text = String("\(time)".prefix(7)) }

  /// Of its archive.
  var fileName: FileName { FileName(text + ".tsv.gz") }

  package static func < (one: ArchiveMonth, other: ArchiveMonth) -> Bool { one.text < other.text }
}

/// What an archive says of a receipt beside its text, as far as the journal tells.
private struct ReceiptFacts {
  /// Of the `done:` line.
  var time: Timestamp?
  var output: String?
  var size: UInt64?
  var digests: [(key: String, value: String)] = []
  /// The one that was asked last.
  var url: String?

  init(_ bytes: UnsafeRawBufferPointer) {
    JournalScan.lines(bytes) { line in
      switch line.key {
      // As ``Journal/Publication`` has it: what came before is no receipt any more.
      case .requeued: (time, output) = (nil, nil)
      case .started: (time, output, url) = (nil, nil, line.text("url"))
      case .verified:
        size = line.number("size")
        digests = line.fields?.named.filter { DigestAlgorithm(rawValue: $0.key) != nil } ?? []
      case .done: (time, output) = (line.time, line.text("output"))
      default: break
      }
    }
  }
}

/// How a column of an archive has bytes: as ``escaped(_:)`` shows them, and a newline as `\n`. So a line is text that
/// cannot control a terminal, and printf(1) with `%b` writes the bytes again. Pure.
package enum ArchiveText {
  /// Adds `bytes` to a line.
  package static func append(_ bytes: UnsafeRawBufferPointer, to line: inout [UInt8]) {
    line.reserveCapacity(line.count + bytes.count + bytes.count / 16)
    var rest = bytes
    while let newline = rest.firstIndex(of: 0x0A) {
      append(part: UnsafeRawBufferPointer(rebasing: rest[..<newline]), to: &line)
      line.append(UInt8(ascii: "\\"))
      line.append(UInt8(ascii: "n"))
      rest = UnsafeRawBufferPointer(rebasing: rest[(newline + 1)...])
    }
    append(part: rest, to: &line)
  }

  private static func append(part: UnsafeRawBufferPointer, to line: inout [UInt8]) {
    let isPlain = part.allSatisfy { 0x20...0x7E ~= $0 && $0 != 0x5C }
    if isPlain { line.append(contentsOf: part) } else { line += escaped(part).utf8 }
  }

  /// The bytes of a column; nil if it has another escape, or one that is cut.
  package static func decoded(_ column: Slice<UnsafeRawBufferPointer>) -> [UInt8]? {
    var rest = UnsafeRawBufferPointer(rebasing: column)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(rest.count)
    while let base = rest.baseAddress, let found = memchr(base, 0x5C, rest.count) {
      let length = UnsafeRawPointer(found) - base
      bytes.append(contentsOf: rest[..<length])
      let escape = rest[length...].prefix(4)
      guard escape.count >= 2 else { return nil }
      switch escape[length + 1] {
      case UInt8(ascii: "n"):
        bytes.append(0x0A)
        rest = UnsafeRawBufferPointer(rebasing: rest[(length + 2)...])
      case UInt8(ascii: "x"):
        let digits = escape.dropFirst(2)
        guard digits.count == 2, digits.allSatisfy(isHexDigit),
          let byte = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
        else { return nil }
        bytes.append(byte)
        rest = UnsafeRawBufferPointer(rebasing: rest[(length + 4)...])
      default: return nil
      }
    }
    bytes.append(contentsOf: rest)
    return bytes
  }
}
