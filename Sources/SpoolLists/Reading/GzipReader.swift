internal import CZlib
internal import Spool

extension ByteSource {
  /// The same; inflated, if it is gzipped (RFC 1952).
  func inflated() throws -> ByteSource {
    guard try peek().starts(with: GzipReader.magic) else { return self }
    let gzip = try GzipReader(self)
    return ByteSource { try gzip.read(into: $0) }
  }
}

/// Inflates gzipped data of any number of members (RFC 1952 section 2.2). As with gzip(1), there may be zeros behind a
/// member; anything else there is damage.
private final class GzipReader {
  /// What a gzipped file begins with (RFC 1952 section 2.3.1).
  static let magic: [UInt8] = [0x1F, 0x8B]

  private let source: ByteSource
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private let input = UnsafeMutablePointer<UInt8>.allocate(capacity: ByteSource.blockSize)
  /// Whether a member has begun and not ended; an empty file has none.
  private var isOpen = true

  init(_ source: ByteSource) throws(Defect) {
    self.source = source
    stream.initialize(to: z_stream())
    // 15 bits of window, and 16 for gzip's head and tail.
    let code = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard code == Z_OK else { throw Defect(line: nil, reason: "no memory is left to inflate it") }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    input.deallocate()
  }

  /// - Returns: how many bytes were put into `buffer`; 0 at the end.
  /// - Throws: ``SpoolError``; ``Defect`` where the data is damaged or ends too early.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(buffer.count)
    while Int(stream.pointee.avail_out) == buffer.count {
      if stream.pointee.avail_in == 0, try !fill() {
        if isOpen { throw Defect(line: nil, reason: "the gzipped data ends too early") }
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
      default: throw Defect(line: nil, reason: "the gzipped data is damaged")
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

  private func fill() throws -> Bool {
    guard let block = try source.next() else { return false }
    input.update(from: block, count: block.count)
    stream.pointee.next_in = input
    stream.pointee.avail_in = UInt32(block.count)
    return true
  }
}
