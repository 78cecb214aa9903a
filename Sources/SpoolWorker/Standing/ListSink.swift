internal import Spool
internal import SystemPackage
internal import Transfer

/// Receives a list into a file.
final class ListSink: FetchSink {
  private let file: ScratchFile
  private let mirror: MirrorURL
  private let isConditional: Bool
  private var length: UInt64 = 0
  private var expected: UInt64?
  private var buffer: [UInt8] = []
  private var lastByte: UInt8?
  private var firstByte: UInt8?
  private(set) var isUnchanged = false
  private(set) var refusal: Failure?
  private(set) var error: SpoolError?

  private static let bufferSize = 256 << 10
  /// Bytes of a list; a longer one is refused.
  private static let longest: UInt64 = 64 << 20

  init(_ file: ScratchFile, _ mirror: MirrorURL, isConditional: Bool) {
    self.file = file
    self.mirror = mirror
    self.isConditional = isConditional
  }

  var hasAll: Bool { expected.map { length + UInt64(buffer.count) >= $0 } ?? false }

  func accept(_ response: Response) -> Bool {
    switch response.content {
    case .whole:
      expected = response.statedEnd
      // The list's reader inflates it.
      if let coding = response.coding, !response.isDecoded, !["gzip", "x-gzip"].contains(coding.lowercasedASCII) {
        let reason = "\(mirror.parts.host) sent the list with Content-Encoding: \(escaped(coding.prefix(40)))"
        return refuse(Failure(.encoded, reason), response)
      }
      if let expected, expected > Self.longest { return refuse(tooLong) }
      return true
    case .refused(.http(status: 304, logins: _)) where isConditional:
      isUnchanged = true
      return true
    case .refused(let reason): return refuse(Failure(reason, from: mirror.parts, mayPass: false), response)
    case .range, .unknownRange, .nothingThere:
      return refuse(
        Failure(.badResponse, "\(mirror.parts.host) sent a part of the list, which was not requested"), response)
    }
  }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if isUnchanged { return true }
    if length + UInt64(buffer.count + bytes.count) > Self.longest { return refuse(tooLong) }
    firstByte = firstByte ?? bytes.first
    lastByte = bytes.last ?? lastByte
    buffer += bytes
    return buffer.count < Self.bufferSize || flush()
  }

  private var tooLong: Failure {
    Failure(.badEntries, "\(mirror.parts.host): the list is longer than \(Self.longest >> 20) MiB")
  }

  private func refuse(_ failure: Failure, _ response: Response? = nil) -> Bool {
    refusal = failure
    refusal?.retryAfter = response?.retryAfter
    return false
  }

  private func flush() -> Bool {
    do throws(SpoolError) {
      try file.write(buffer, at: Int64(length))
    } catch {
      self.error = error
      return false
    }
    length += UInt64(buffer.count)
    buffer.removeAll(keepingCapacity: true)
    return true
  }

  /// - Returns: why the list may have been cut; nil if it is whole, as far as the transfer shows.
  /// - Throws: ``SpoolError``.
  func finish(_ response: Response?) throws(SpoolError) -> Failure? {
    guard flush() else { throw error ?? SpoolError(call: .write, path: "tmp", errno: .ioError) }
    guard let response, response.ending != .announced || response.isDecoded, expected == nil else { return nil }
    // XML and gzip show their own end. A line that was cut looks like another one.
    let showsEnd = firstByte == UInt8(ascii: "<") || firstByte == 0x1F || lastByte == UInt8(ascii: "\n")
    if showsEnd { return nil }
    return Failure(.shortBody, "\(mirror.parts.host) closed the connection within the last line of the list")
  }
}
