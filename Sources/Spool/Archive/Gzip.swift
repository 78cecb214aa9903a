internal import CZlib
internal import Glibc
internal import SystemPackage

/// Inflates gzipped data of any number of members (RFC 1952 section 2.2). As with gzip(1), there may be zeros behind a
/// member; anything else there is damage.
package final class GzipReader {
  private static let blockSize = 64 << 10

  private let name: String
  private let readMore: (UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private let input = UnsafeMutablePointer<UInt8>.allocate(capacity: blockSize)
  /// Whether a member has begun and not ended; an empty file has none.
  private var isOpen = true

  /// - Parameters:
  ///   - name: of the data, for errors.
  ///   - readMore: as read(2): how many bytes it has put into the buffer; 0 at the end.
  /// - Throws: ``SpoolError``, ENOMEM.
  package init(
    _ name: String, _ readMore: @escaping (UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int
  ) throws(SpoolError) {
    (self.name, self.readMore) = (name, readMore)
    stream.initialize(to: z_stream())
    // 15 bits of window, and 16 for gzip's head and tail.
    let code = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard code == Z_OK else { throw SpoolError(call: .read, path: name, errno: .noMemory) }
  }

  /// By the seam ``System``.
  convenience init(_ file: SharedFile) throws(SpoolError) {
    var offset: Int64 = 0
    try self.init(file.path.display) { (buffer) throws(SpoolError) in
      let count = try file.read(into: buffer, at: offset)
      offset += Int64(count)
      return count
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    input.deallocate()
  }

  /// - Returns: how many bytes were put into `buffer`; 0 at the end.
  /// - Throws: ``SpoolError``; EBADMSG where the data is damaged or ends too early.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int {
    stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(buffer.count)
    while Int(stream.pointee.avail_out) == buffer.count {
      if stream.pointee.avail_in == 0, try !fill() {
        if isOpen { throw damage("the gzipped data ends too early") }
        return 0
      }
      if !isOpen {
        skipZeros()
        if stream.pointee.avail_in == 0 { continue }
      }
      isOpen = true
      switch inflate(stream, Z_NO_FLUSH) {
      case Z_OK, Z_BUF_ERROR: break
      case Z_STREAM_END:
        // It keeps what it has of the next member.
        inflateReset(stream)
        isOpen = false
      default: throw damage("the gzipped data is damaged")
      }
    }
    return buffer.count - Int(stream.pointee.avail_out)
  }

  /// What pads a file to the length of a block.
  private func skipZeros() {
    while stream.pointee.avail_in > 0, stream.pointee.next_in.pointee == 0 {
      stream.pointee.next_in += 1
      stream.pointee.avail_in -= 1
    }
  }

  private func damage(_ reason: String) -> SpoolError {
    SpoolError(call: .read, path: name, errno: .badMessage, reason: reason)
  }

  private func fill() throws(SpoolError) -> Bool {
    let count = try readMore(UnsafeMutableRawBufferPointer(start: input, count: Self.blockSize))
    stream.pointee.next_in = input
    stream.pointee.avail_in = UInt32(count)
    return count > 0
  }
}

/// Makes members of gzipped files.
enum Gzip {
  /// Adds a member with `bytes` to `members`.
  /// - Throws: ``SpoolError``, ENOMEM.
  static func append(_ bytes: [UInt8], to members: inout [UInt8]) throws(SpoolError) {
    var stream = z_stream()
    let size = Int32(MemoryLayout<z_stream>.size)
    // 15 bits of window, and 16 for gzip's head and tail; the memory that zlib takes by default.
    let code = deflateInit2_(
      &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size)
    guard code == Z_OK else { throw SpoolError(call: .write, path: "gzip", errno: .noMemory) }
    defer { deflateEnd(&stream) }
    var block = [UInt8](repeating: 0, count: 64 << 10)
    bytes.withUnsafeBufferPointer { bytes in
      // deflate(3) takes no pointer to constant bytes, and changes none.
      stream.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
      stream.avail_in = UInt32(bytes.count)
      block.withUnsafeMutableBufferPointer { block in
        var isOver = false
        while !isOver {
          stream.next_out = block.baseAddress
          stream.avail_out = UInt32(block.count)
          isOver = deflate(&stream, Z_FINISH) == Z_STREAM_END
          members += block[..<(block.count - Int(stream.avail_out))]
        }
      }
    }
  }
}
