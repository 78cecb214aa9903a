internal import CZlib
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

/// A file that may be gzipped, read by zlib's gzread, which also passes plain files through.
final class GzipFile {
  private let file: gzFile
  private let path: String

  /// - Parameter path: the file's path; nil for standard input.
  /// - Throws: ``SpoolError``.
  init(_ path: [UInt8]?) throws(SpoolError) {
    let name = path.map { escaped($0) } ?? "standard input"
    let descriptor = path.map { Glibc.open($0.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC) } ?? dup(0)
    guard descriptor >= 0 else { throw SpoolError(call: .open, path: name, errno: Errno(rawValue: errno)) }
    guard let file = gzdopen(descriptor, "rb") else {
      close(descriptor)
      throw SpoolError(call: .open, path: name, errno: .noMemory)
    }
    gzbuffer(file, UInt32(ByteSource.blockSize))
    self.file = file
    self.path = name
  }

  deinit { gzclose(file) }

  /// - Throws: ``SpoolError``; ``Defect`` where the gzipped data is damaged or ends too early.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    errno = 0
    let count = gzread(file, buffer.baseAddress, UInt32(buffer.count))
    // gzread returns what there was before an early end, and says so only here.
    var code: Int32 = 0
    _ = gzerror(file, &code)
    switch code {
    case Z_OK, Z_STREAM_END: return Int(count)
    case Z_ERRNO: throw SpoolError(call: .read, path: path, errno: Errno(rawValue: errno == 0 ? EIO : errno))
    case Z_BUF_ERROR: throw Defect(line: nil, reason: "the gzipped data ends too early")
    default: throw Defect(line: nil, reason: "the gzipped data is damaged")
    }
  }
}
