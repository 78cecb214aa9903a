internal import CZlib
internal import Spool

/// Inflates gzipped data of any number of members (RFC 1952 section 2.2). As with gzip(1), there may be zeros behind a
/// member; anything else there is damage.
final class GzipReader {
  private static let blockSize = 64 << 10
  /// What a gzipped file begins with (RFC 1952 section 2.3.1).
  static let magic: [UInt8] = [0x1F, 0x8B]

  private let readMore: (UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private let input = UnsafeMutablePointer<UInt8>.allocate(capacity: blockSize)
  /// Whether a member has begun and not ended; an empty file has none.
  private var isOpen = true

  /// - Parameter readMore: as read(2): how many bytes it has put into the buffer; 0 at the end.
  init(_ readMore: @escaping (UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int) throws(Defect) {
    self.readMore = readMore
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

  private func fill() throws(SpoolError) -> Bool {
    let count = try readMore(UnsafeMutableRawBufferPointer(start: input, count: Self.blockSize))
    stream.pointee.next_in = input
    stream.pointee.avail_in = UInt32(count)
    return count > 0
  }
}
