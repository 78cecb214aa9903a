import Testing

@testable import Transfer

@Suite struct HeadReaderTests {
  /// Feeds lines until one of them ends the head.
  private func read(_ lines: [String]) -> HeadReader.Event {
    var reader = HeadReader()
    var event = HeadReader.Event.nothing
    for line in lines {
      guard case .nothing = event else { break }
      event = Array(line.utf8).withUnsafeBytes { reader.take($0) }
    }
    return event
  }

  private func head(_ lines: [String]) throws -> ResponseHead {
    guard case .head(let head) = read(lines) else { throw Missing() }
    return head
  }
  private struct Missing: Error {}

  @Test func keepsTheFinalResponseOnly() throws {
    let head = try head([
      "HTTP/1.1 100 Continue\r\n", "X: interim\r\n", "\r\n", "HTTP/1.1 103 Early Hints\r\n", "Link: x\r\n", "\r\n",
      "HTTP/1.1 206 Partial Content\r\n", "ETag:  \"a\" \t\r\n", "Set-Cookie: 1\r\n", "SET-COOKIE: 2\n", "\r\n",
    ])
    #expect(head.status == 206)
    #expect(head.first("etag") == "\"a\"")
    #expect(head.values("set-cookie") == ["1", "2"])
    #expect(head.values("x").isEmpty && head.values("link").isEmpty)
  }

  @Test func unfoldsAndSkipsLinesThatAreNoField() throws {
    let head = try head(["HTTP/2 200 \r\n", "garbage\r\n", "A: b\r\n", "\t c\r\n", "B : d\r\n", "\r\n"])
    #expect(head.first("a") == "b c")
    // A fold before or behind the value is no part of it, or this ETag were no strong one.
    let folded = try self.head(["HTTP/1.1 200 OK\r\n", "ETag:\r\n", " \"v1\"\r\n", "A: b\r\n", " \r\n", "\r\n"])
    #expect(folded.first("etag") == "\"v1\"" && folded.first("a") == "b")
    // As libcurl reads it: not the field B.
    #expect(head.first("b") == nil)
  }

  @Test func readsBytesBeyondUTF8Leniently() throws {
    var reader = HeadReader()
    _ = Array("HTTP/1.1 200 OK\r\n".utf8).withUnsafeBytes { reader.take($0) }
    _ = ([UInt8(ascii: "A"), UInt8(ascii: ":"), 0xff, 0x0a] as [UInt8]).withUnsafeBytes { reader.take($0) }
    guard case .head(let head) = Array("\r\n".utf8).withUnsafeBytes({ reader.take($0) }) else { throw Missing() }
    #expect(head.first("a") == "\u{fffd}")
  }

  @Test(arguments: [
    ["HTTP/1.1\r\n"], ["HTTP/1.1 99 x\r\n"], ["HTTP/1.1 2000 x\r\n"], ["HTTP/1.1 abc\r\n"], ["HTTP/1.1  200 x\r\n"],
    ["HTTP/1.1 +20 x\r\n"], ["HTTP/1.1 101 Switching Protocols\r\n"], ["A: b\r\n"], ["\r\n"],
  ])
  func malformed(lines: [String]) { #expect(isMalformed(lines)) }

  private func isMalformed(_ lines: [String]) -> Bool { if case .malformed = read(lines) { true } else { false } }

  @Test func limitsHeadsInterimResponsesAndTrailersTogether() {
    let big = "A: " + String(repeating: "x", count: 60_000) + "\r\n"
    #expect(isMalformed(["HTTP/1.1 200 OK\r\n"] + Array(repeating: big, count: 5)))
    let flood = Array(repeating: ["HTTP/1.1 100 Continue\r\n", "\r\n"], count: 20_000).flatMap { $0 }
    #expect(isMalformed(flood))
    // Each folded line costs a reading of all before it.
    #expect(isMalformed(["HTTP/1.1 200 OK\r\n", "A: b\r\n"] + Array(repeating: " c\r\n", count: 101)))
  }

  @Test(
    arguments: [
      (200, [("content-length", "5")], .length(5)), (200, [("content-length", "5, 5")], .length(5)),
      (200, [("content-length", "5"), ("content-length", "5")], .length(5)), (200, [], .close),
      (200, [("transfer-encoding", "chunked"), ("content-length", "x")], .chunked),
      (200, [("transfer-encoding", "chunked"), ("transfer-encoding", "Chunked")], .chunked),
      (200, [("transfer-encoding", "Identity"), ("content-length", "5")], .length(5)),
      (200, [("transfer-encoding", "identity")], .close),
      (200, [("transfer-encoding", "chunked, gzip")], .invalid("a transfer coding that was not requested")),
      (304, [("content-length", "5")], .none), (204, [], .none),
      (200, [("content-length", "5"), ("content-length", "6")], .invalid("contradictory Content-Length fields")),
      (200, [("content-length", "-5")], .invalid("Content-Length is not a valid number")),
      (200, [("content-length", "")], .invalid("Content-Length is not a valid number")),
      (200, [("content-length", "9223372036854775808")], .invalid("Content-Length is not a valid number")),
    ] as [(Int, [(String, String)], ResponseHead.Framing)])
  func framing(status: Int, fields: [(String, String)], framing: ResponseHead.Framing) {
    let head = ResponseHead(status: status, fields: fields.map { (name: $0.0, value: $0.1) })
    #expect(head.framing == framing)
  }

  /// Also where it does not say so.
  @Test(arguments: [
    (206, "bytes 0-4/9", true), (206, "none", false), (200, "bytes 0-4/9", false), (200, "bytes 0-8/9", false),
  ])
  func aServerThatSendsAPartSendsParts(status: Int, range: String, takesRanges: Bool) throws {
    let head = ResponseHead(status: status, fields: [(name: "content-range", value: range)])
    #expect(Response(head, from: try URLParts("http://h/f"), now: 0).takesRanges == takesRanges)
  }

  /// Only Content-Range tells that a 200 is a part, and Content-Length whether that is true.
  @Test(
    arguments: [
      ("bytes 5-8/9", "4", .range(first: 5, last: 8, total: 9)),
      ("bytes 5-8/*", "4", .range(first: 5, last: 8, total: nil)),
      ("bytes 0-4/9", "5", .range(first: 0, last: 4, total: 9)), ("bytes 5-8/9", "9", .whole),
      ("bytes 0-8/9", "9", .whole), ("bytes 0-8/9", nil, .whole), ("bytes 0-8/*", "9", .whole), ("part", "9", .whole),
      ("bytes 5-8/9", "3", .unknownRange("Content-Length and Content-Range disagree")),
      ("bytes 5-8/9", nil, .unknownRange("Content-Range with status 200")),
    ] as [(String, String?, Response.Content)])
  func aPartWithStatus200(range: String, length: String?, content: Response.Content) throws {
    let fields = [(name: "content-range", value: range)] + (length.map { [(name: "content-length", value: $0)] } ?? [])
    let head = ResponseHead(status: 200, fields: fields)
    #expect(Response(head, from: try URLParts("http://h/f"), now: 0).content == content)
  }

  /// It goes into logs and records, and into the environment of hooks.
  @Test func aServersTextIsShort() throws {
    let long = String(repeating: "x", count: 90_000)
    let codings = [(name: String, value: String)](repeating: ("content-encoding", "gzip, br"), count: 1000)
    let fields =
      [
        (name: "etag", value: "\"\(long)\""), (name: "content-encoding", value: "gzip;\(long)"),
        (name: "last-modified", value: "Fri, 27 Nov 2026 10:00:00 GMT \(long)"),
      ] + codings
    let response = Response(ResponseHead(status: 200, fields: fields), from: try URLParts("http://h/f"), now: 0)
    #expect(response.etag == nil && response.lastModified == nil && response.coding == "gzip, gzip, br, gzip")
  }
}
