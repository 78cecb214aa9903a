/// Writes frames of HTTP/2 (RFC 9113 section 4) in answer to a request that came through an `HTTP2Front`, as a script
/// says: no rule of the protocol is kept but that a frame has a header.
package struct HTTP2Stream {
  package let reply: Reply
  /// The stream of the request.
  package let number: UInt32

  /// Nil for a request over HTTP/1.
  package init?(_ request: ServerRequest, _ reply: Reply) {
    guard request.version == "HTTP/2", let number = request.value("http2-stream").flatMap({ UInt32($0) }) else {
      return nil
    }
    (self.reply, self.number) = (reply, number)
  }

  /// RFC 9113 section 6.
  package enum FrameType: UInt8 {
    case data, headers, priority, rstStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
    /// Of no known meaning.
    case unknown = 0x20
  }

  package struct Flags: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let endStream = Flags(rawValue: 0x1)
    package static let endHeaders = Flags(rawValue: 0x4)
    package static let padded = Flags(rawValue: 0x8)
    package static let priority = Flags(rawValue: 0x20)
  }

  /// RFC 9113 section 7.
  package enum ErrorCode: UInt32, CaseIterable, Sendable {
    case noError, protocolError, internalError, flowControlError, settingsTimeout, streamClosed, frameSizeError
    case refusedStream, cancel, compressionError, connectError, enhanceYourCalm, inadequateSecurity, http11Required
  }

  /// One frame; `stream`: nil for that of the request.
  package func frame(
    _ type: FrameType, _ flags: Flags, stream: UInt32? = nil, _ payload: some Collection<UInt8>
  ) throws(PeerGone) {
    let length = bigEndian(UInt32(payload.count)).dropFirst()
    try reply.send(length + [type.rawValue, flags.rawValue] + bigEndian(stream ?? number) + payload)
  }

  /// One frame without flags; `stream`: nil for that of the request.
  package func frame(
    _ type: FrameType, stream: UInt32? = nil, _ payload: some Collection<UInt8>
  ) throws(PeerGone) {
    try frame(type, [], stream: stream, payload)
  }

  /// The head of a response, its fields as `name: value`.
  package func head(_ status: String, _ fields: [String] = [], end: Bool = false) throws(PeerGone) {
    try headers([":status: \(status)"] + fields, end ? .endStream : [])
  }

  /// A header block of fields `name: value` in one frame.
  package func headers(_ fields: [String], _ flags: Flags = []) throws(PeerGone) {
    try frame(.headers, flags.union(.endHeaders), fieldBlock(fields))
  }

  /// The body, or a part of it, in frames of at most `piece` bytes.
  package func data(_ bytes: some Collection<UInt8>, end: Bool = false, piece: Int = 16_384) throws(PeerGone) {
    var rest = Array(bytes)[...]
    repeat {
      let isLast = rest.count <= piece
      try frame(.data, end && isLast ? .endStream : [], rest.prefix(piece))
      rest = rest.dropFirst(piece)
    } while !rest.isEmpty
  }

  /// RST_STREAM: no more of this response.
  package func resetStream(_ code: ErrorCode) throws(PeerGone) {
    try frame(.rstStream, bigEndian(code.rawValue))
  }

  /// GOAWAY: nothing will be done for streams beyond `lastStream`.
  package func goAway(_ code: ErrorCode, lastStream: UInt32) throws(PeerGone) {
    try frame(.goAway, stream: 0, bigEndian(lastStream) + bigEndian(code.rawValue))
  }
}

/// Four bytes, as all numbers of HTTP/2.
package func bigEndian(_ number: UInt32) -> [UInt8] {
  withUnsafeBytes(of: number.bigEndian) { Array($0) }
}

/// A header block that needs no state: each field `name: value` a literal without indexing, with a new name (RFC 7541
/// section 6.2.2). The colon that divides them is the first one that is followed by a blank.
package func fieldBlock(_ fields: [String]) -> [UInt8] {
  fields.flatMap { field -> [UInt8] in
    let bytes = latin1Bytes(field)
    let separator: [UInt8] = [UInt8(ascii: ":"), UInt8(ascii: " ")]
    guard let range = bytes.firstRange(of: separator) else { return [0] + hpackString(bytes) + [0] }
    return [0] + hpackString(bytes[..<range.lowerBound]) + hpackString(bytes[range.upperBound...])
  }
}

/// A string literal without Huffman coding (RFC 7541 sections 5.1 and 5.2).
private func hpackString(_ bytes: some Collection<UInt8>) -> [UInt8] {
  guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
  var encoded: [UInt8] = [127]
  var rest = bytes.count - 127
  while rest >= 128 {
    encoded.append(UInt8(rest % 128) | 128)
    rest /= 128
  }
  return encoded + [UInt8(rest)] + bytes
}
