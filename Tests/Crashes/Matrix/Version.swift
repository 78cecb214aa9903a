import TestSupport

/// What a URL holds at one time.
struct Version: Sendable {
  let bytes: [UInt8]
  let etag: String
  /// As jobs and journals write it.
  let crc32: String

  private init(bytes: [UInt8], etag: String) {
    (self.bytes, self.etag, crc32) = (bytes, etag, hex8(independentCRC32(bytes)))
  }

  /// Small, so that a run has few calls; in two halves each of which reaches the worker in one piece.
  static let length = 24_576
  static let half = length / 2

  static let current = Version(bytes: pattern(seed: 2_463_534_242), etag: "\"current\"")
  /// Differs in every byte, so that no splice goes unseen.
  static let previous = Version(bytes: current.bytes.map { ~$0 }, etag: "\"previous\"")

  private static func pattern(seed: UInt32) -> [UInt8] {
    var state = seed
    return (0..<length).map { _ in
      state ^= state << 13
      state ^= state >> 17
      state ^= state << 5
      return UInt8(truncatingIfNeeded: state >> 8)
    }
  }

  /// Of ``current``, by sha256sum(1) and md5sum(1).
  static let sha256 = "bd7df1144096b9fbf8b689a3be99e3bb2d0f1d64fb132c6a6f17c7f6e01e67e5"
  static let md5 = "8e8f317f35312f09c21d1908d2d4c9cb"

  /// The list of the pieces of ``current``, by sha256sum(1).
  static let pieces = """
    pieces: sha256 4k
    8b2aa2284d7a72430c9894f611e26a2e7efc83d160d34e70da5fb6ecbd4110d7
    da038082399008d8727e829361a8e4f0e66aa0debf06014b1fbccc49e5bf4c0a
    d2f5f0e5c7095b0e7692d127860380fd890acd88b4a322ce8ddd0ab68789360f
    6cfca880dbb8f4ccf10a21a01115372eb730e54ab05835a19b3a4bbb27bd0d6e
    35924658a11390ba8e232b46dbb9bc14e7359869844d1e07c5036e72d388f126
    545350cc3c3ff12aa00ab0da23a2e13711bef4422f768e419e0b7f6a4da0c015

    """
  /// Of ``pieces``, by sha256sum(1).
  static let pieceList = "aea251e1a70819373d2fec866a1aed2735bc78c47a49e9a7e6bbcc54b91c86ab"
  /// ``current`` with a bit flipped in the second piece.
  static let flipped = Version(
    bytes: current.bytes.enumerated().map { $0.offset == 5000 ? $0.element ^ 1 : $0.element }, etag: "\"current\"")

  /// States ``sha256`` of the whole file, also in an answer with a part of it (RFC 9530).
  static let statedSHA256 = "Repr-Digest: sha-256=:vX3xFECWufv4tomjvpnjuy0PHWT7EyxqbxfH9uAeZ+U=:"
  /// States ``md5`` of what the answer has: of the file if it is whole.
  static let statedMD5 = "Content-MD5: jo8xfzUxLwnCHRkI0tTJyw=="

  /// Answers with the right head and a half of what it states, then with an error page, and closes.
  func serveWithWrongTail(_ request: ServerRequest, _ reply: Reply) throws {
    try serve(request, reply, tail: Array("<html>502 Bad Gateway</html>".utf8))
  }

  /// Answers as a good server does: Range and If-Range honoured.
  /// - Parameters:
  ///   - fields: more header fields.
  ///   - tail: sent instead of the second half of the answer, whose end it is.
  ///   - middle: called when the first half of the whole has been sent.
  func serve(
    _ request: ServerRequest, _ reply: Reply, _ fields: [String] = [], tail: [UInt8]? = nil,
    middle: ((Reply) throws -> Void)? = nil
  ) throws {
    let condition = request.value("if-range")
    let range = condition == nil || condition == etag ? request.rangeStart : nil
    let start = range ?? 0
    guard start < bytes.count else {
      return try reply.respond("416 Range Not Satisfiable", ["Content-Range: bytes */\(bytes.count)"], body: [])
    }
    let end = range == nil ? bytes.count : min(bytes.count, (request.rangeEnd ?? bytes.count) + 1)
    var head =
      range == nil
      ? "HTTP/1.1 200 OK\r\n"
      : "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes \(start)-\(end - 1)/\(bytes.count)\r\n"
    for field in fields { head += "\(field)\r\n" }
    head += "ETag: \(etag)\r\nContent-Length: \(end - start)\r\n\r\n"
    if let tail {
      try reply.send(latin1Bytes(head) + bytes[start..<(start + (end - start) / 2)] + tail)
      return try reply.finish()
    }
    // In one piece with its head: how a body falls into writes must be the same in every run.
    guard let middle, range == nil else { return try reply.send(latin1Bytes(head) + bytes[start..<end]) }
    try reply.send(latin1Bytes(head) + bytes[..<Version.half])
    try middle(reply)
    try reply.send(bytes[Version.half...])
  }
}
