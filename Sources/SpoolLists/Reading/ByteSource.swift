internal import Glibc
internal import Spool
internal import SystemPackage

/// The bytes of a list, a block at a time. A gzipped file (RFC 1952) is inflated.
final class ByteSource {
  static let blockSize = 64 << 10

  private let read: (UnsafeMutableRawBufferPointer) throws -> Int
  /// Read ahead, to tell the format.
  private var ahead: [UInt8]?

  /// - Parameter read: as read(2): how many bytes it has put into the buffer; 0 at the end.
  init(_ read: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) { self.read = read }

  /// The bytes in memory.
  convenience init(_ bytes: [UInt8]) {
    var rest = bytes[...]
    self.init { buffer in
      let count = min(buffer.count, rest.count)
      buffer.copyBytes(from: rest.prefix(count))
      rest = rest.dropFirst(count)
      return count
    }
  }

  /// The first block, which ``next()`` returns once more.
  func peek() throws -> [UInt8] {
    let block = try next() ?? []
    ahead = block
    return block
  }

  /// Whether a text in UTF-16 is little-endian, as its first bytes say: a byte order mark, or half a letter of ASCII;
  /// nil for one that is not in UTF-16.
  static func isLittleEndian(_ head: [UInt8]) -> Bool? {
    guard head.count >= 2 else { return nil }
    switch (head[0], head[1]) {
    case (0xFF, 0xFE), (1..., 0): return true
    case (0xFE, 0xFF), (0, 1...): return false
    default: return nil
    }
  }

  static func units(_ bytes: [UInt8], isLittle: Bool) -> [UInt16] {
    stride(from: 0, to: bytes.count - 1, by: 2).map {
      UInt16(bytes[$0]) << (isLittle ? 0 : 8) | UInt16(bytes[$0 + 1]) << (isLittle ? 8 : 0)
    }
  }

  /// The same text in UTF-8.
  func inUTF8() throws -> ByteSource {
    guard let isLittle = Self.isLittleEndian(try peek()) else { return self }
    var left: [UInt8] = []
    var text: ArraySlice<UInt8> = []
    return ByteSource { buffer in
      while text.isEmpty, let block = try self.next() {
        let bytes = left + block
        var units = Self.units(bytes, isLittle: isLittle)
        // Half a character waits for the next block.
        if block.count == Self.blockSize, units.last.map(UTF16.isLeadSurrogate) == true { units.removeLast() }
        left = Array(bytes[(units.count * 2)...])
        guard block.count == Self.blockSize || left.isEmpty, let valid = String(validating: units, as: UTF16.self)
        else {
          throw Defect(line: nil, reason: "it looks like UTF-16, and is not: save the list as UTF-8")
        }
        text = Array(valid.utf8)[...]
      }
      let count = min(buffer.count, text.count)
      buffer.copyBytes(from: text.prefix(count))
      text = text.dropFirst(count)
      return count
    }
  }

  /// nil at the end. Only the last block is shorter than ``blockSize``.
  func next() throws -> [UInt8]? {
    if let ahead {
      self.ahead = nil
      return ahead.isEmpty ? nil : ahead
    }
    let block = try [UInt8](unsafeUninitializedCapacity: Self.blockSize) { buffer, filled in
      while filled < Self.blockSize {
        let count = try read(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...]))
        if count == 0 { break }
        filled += count
      }
    }
    return block.isEmpty ? nil : block
  }
}

/// A file that may be gzipped; plain files are passed through.
final class GzipFile {
  private let file: PlainFile
  /// nil for a plain file.
  private let gzip: GzipReader?

  /// What a gzipped file begins with (RFC 1952 section 2.3.1).
  private static let magic: [UInt8] = [0x1F, 0x8B]

  /// - Parameter path: the file's path; nil for standard input.
  /// - Throws: ``SpoolError``.
  init(_ path: [UInt8]?) throws(SpoolError) {
    let file = try PlainFile.open(path)
    let isGzipped = try file.peek(Self.magic.count) == Self.magic
    self.file = file
    gzip = isGzipped ? try GzipReader(file.name, file.read) : nil
  }

  /// - Throws: ``SpoolError``; ``Defect`` where the gzipped data is damaged or ends too early.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    guard let gzip else { return try file.read(buffer) }
    do throws(SpoolError) {
      return try gzip.read(into: buffer)
    } catch {
      guard error.isDamage else { throw error }
      throw Defect(line: nil, reason: error.reason ?? "the gzipped data is damaged")
    }
  }
}

/// The bytes of a file or of standard input, from the first to the last.
private final class PlainFile {
  /// For errors.
  let name: String
  private let descriptor: Int32
  /// Bytes that were looked at and are still to be read.
  private var ahead: [UInt8] = []

  private init(_ name: String, _ descriptor: Int32) { (self.name, self.descriptor) = (name, descriptor) }

  deinit { close(descriptor) }

  static func open(_ path: [UInt8]?) throws(SpoolError) -> PlainFile {
    let name = path.map { escaped($0) } ?? "standard input"
    let descriptor = path.map { Glibc.open($0.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC) } ?? dup(0)
    guard descriptor >= 0 else { throw SpoolError(call: .open, path: name, errno: Errno(rawValue: errno)) }
    return PlainFile(name, descriptor)
  }

  /// The next bytes, which are read again; fewer at the end of the file. To be called first.
  func peek(_ count: Int) throws(SpoolError) -> [UInt8] {
    while ahead.count < count {
      var block = [UInt8](repeating: 0, count: count - ahead.count)
      let more = try block.withUnsafeMutableBufferPointer { (buffer) throws(SpoolError) in
        try readFile(UnsafeMutableRawBufferPointer(buffer))
      }
      if more == 0 { break }
      ahead += block.prefix(more)
    }
    return ahead
  }

  /// As read(2): how many bytes were put into the buffer; 0 at the end.
  func read(_ buffer: UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int {
    if ahead.isEmpty { return try readFile(buffer) }
    let count = min(ahead.count, buffer.count)
    buffer.copyBytes(from: ahead.prefix(count))
    ahead.removeFirst(count)
    return count
  }

  private func readFile(_ buffer: UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int {
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR { throw SpoolError(call: .read, path: name, errno: Errno(rawValue: errno)) }
    }
  }
}
