import Spool
import Testing

/// One response to one request, and what is to become of it.
struct VerdictCase: Sendable, CustomTestStringConvertible {
  let name: String
  let status: Int
  let fields: [String]
  var offset: UInt64 = 50
  /// The last byte asked for.
  var last: UInt64?
  /// What the data is a prefix of: strong, weak, dated, bare or unknown.
  var version = "strong"
  /// The size that is known of it.
  var total: UInt64? = 100
  var checksum = false
  var size: UInt64?
  var mirror = 1
  var ifRangeIgnored = false
  /// The job's `encoded:`.
  var encoded: EncodedBody?
  /// The coding that the data is kept in.
  var coding: String?
  /// The path of the job's URL.
  var target: String?
  /// `append`, `replace`, `complete`, `startOver`, `askUnbounded`, or the code of a failure.
  let verdict: String
  var testDescription: String { name }
}

extension VerdictCase {
  static let date = "Sat, 21 Nov 2026 12:00:00 GMT"
  static let earlier = "Sat, 21 Nov 2026 10:00:00 GMT"
  private static let good = ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 50"]

  /// The rows of a table: the name, the status, the fields of the header, what else is so, and the verdict.
  /// - Parameter common: what is so in all rows.
  private static func rows(_ table: String, with common: String = "") -> [VerdictCase] {
    tableRows(table, columns: 5).map { cells in
      let fields = cells[2].split(separator: " + ").flatMap { $0 == "good" ? good : [field(String($0))] }
      var row = VerdictCase(name: cells[0], status: Int(cells[1]) ?? 0, fields: fields, verdict: cells[4])
      for (key, value) in settings("\(common) \(cells[3])") { row.set(key, value) }
      return row
    }
  }

  /// Content-Range, ETag and Content-Length are known by their values.
  private static func field(_ text: String) -> String {
    if text.contains(": ") { return text.replacing("EARLIER", with: earlier).replacing("DATE", with: date) }
    if text.contains("\"") { return "etag: \(text)" }
    return Int(text) == nil ? "content-range: \(text)" : "content-length: \(text)"
  }

  private mutating func set(_ key: String, _ value: String) {
    switch key {
    case "offset": offset = UInt64(value) ?? 0
    case "last": last = UInt64(value)
    case "version": version = value
    case "total": total = UInt64(value)
    case "checksum": checksum = true
    case "size": size = UInt64(value)
    case "mirror": mirror = Int(value) ?? 0
    case "if-range": ifRangeIgnored = true
    case "encoded": encoded = EncodedBody(rawValue: value)
    case "coding": coding = value
    case "target": target = value
    default: Issue.record("\(key) in a row of \(name)")
    }
  }

  static let all: [VerdictCase] = [
    fresh, whole, partial, unsatisfiable, firstPieces, encodings, words, codings, unexpected, failures,
  ].flatMap { $0 }

  private static let fresh = rows(
    """
    whole | 200 | 100 | | append
    whole without length | 200 | | | append
    empty | 200 | 0 | | append
    another size than declared | 200 | 99 | version=strong size=100 | mismatch-size
    the declared size | 200 | 100 | version=strong size=100 | append
    206 unasked, of a part | 206 | bytes 0-49/100 | | bad-response
    206 unasked, of all | 206 | bytes 0-99/100 | | append
    206 unasked, of another size than declared | 206 | bytes 0-99/100 | size=99 | mismatch-size
    206 unasked, total * | 206 | bytes 0-99/* | | bad-response
    a part as 200, unasked | 200 | good | | bad-response
    whole, with its range | 200 | bytes 0-99/100 + 100 | | append
    416 unasked | 416 | bytes */100 | | bad-response
    """, with: "offset=0 version=unknown")

  private static let whole = rows(
    """
    changed | 200 | 90 + "v2" | | replace, dropped
    range ignored | 200 | 100 + "v1" | | replace, dropped
    a part as 200, by its range | 200 | good | | append
    a part as 200, by its range alone | 200 | bytes 50-99/100 + "v1" + transfer-encoding: chunked | | useless
    a part as 200, changed | 200 | bytes 50-99/100 + "v2" + 50 | | startOver
    whole, with a range | 200 | bytes 50-99/100 + "v1" + 100 | | replace, dropped
    a part as 200, by its length | 200 | 50 + "v1" | | useless
    a part as 200, by its length alone | 200 | 50 | | useless
    a part as 200, by its length and the declared size | 200 | 50 + "v1" | total=none size=100 | useless
    resume, another size than declared | 200 | 99 + "v2" | size=100 | mismatch-size
    no validator where there was one | 200 | 100 | | other-kind
    much smaller than what is here | 200 | 24 + "v2" | | other-kind
    another type | 200 | 100 + "v2" + content-type: text/html; charset=utf-8 | | other-kind
    the same type | 200 | 100 + "v2" + content-type: Application/Zip; x=y | | replace, dropped
    data that nothing could go on with | 200 | 100 | version=bare | replace, dropped
    another mirror | 200 | 100 + "v1" | mirror=2 | replace, kept
    """)

  /// Answers of a part of the file (RFC 9110 section 15.3.7). An ETag is unique within one resource only (section
  /// 8.8.1). What is continued is in the same coding.
  private static let partial = rows(
    """
    a range beyond the known size, no total | 206 | bytes 50-100/* + "v1" | | startOver
    a range to the known size, no total | 206 | bytes 50-99/* + "v1" | | append
    right | 206 | good | | append
    right, less than asked for | 206 | bytes 50-59/100 + "v1" | | append
    right, unit in capitals | 206 | BYTES 50-99/100 + "v1" | | append
    no Content-Range | 206 | "v1" | | useless
    two | 206 | good + bytes 50-99/100 | | useless
    another unit | 206 | items 50-99/100 + "v1" | | useless
    starts before | 206 | bytes 49-99/100 + "v1" | | useless
    starts behind | 206 | bytes 51-99/100 + "v1" | | useless
    starts at 0 | 206 | bytes 0-99/100 + "v1" | | useless
    last before first | 206 | bytes 50-49/100 + "v1" | | useless
    beyond total | 206 | bytes 50-100/100 + "v1" | | useless
    overflow | 206 | bytes 50-99/18446744073709551716 + "v1" | | useless
    unsatisfied form | 206 | bytes */100 + "v1" | | useless
    total changed | 206 | bytes 50-109/110 + "v1" | | startOver
    length and range disagree | 206 | bytes 50-99/100 + "v1" + 49 | | useless
    chunked: length means nothing | 206 | bytes 50-99/100 + "v1" + 49 + transfer-encoding: chunked | | append
    etag changed | 206 | bytes 50-99/100 + "v2" | | startOver
    etag turned weak | 206 | bytes 50-99/100 + W/"v1" | | startOver
    etag gone | 206 | bytes 50-99/100 | | startOver
    two etags | 206 | good + "v1" | | startOver
    multipart | 206 | good + content-type: Multipart/ByteRanges; boundary=x | | useless
    gzip range | 206 | good + content-encoding: gzip | | useless
    gzip range of a .gz | 206 | good + content-encoding: gzip | target=/a.gz | append
    another total than declared | 206 | good | size=99 | mismatch-size
    total *, and what is known is another than declared | 206 | bytes 50-99/* + "v1" | size=99 | mismatch-size
    date, same | 206 | bytes 50-99/100 + last-modified: EARLIER | version=dated | append
    date, left out | 206 | bytes 50-99/100 | version=dated | append
    date, left out by a mirror that may never have compared | 206 | bytes 50-99/100 | version=dated mirror=2 | startOver
    no total, and none known | 206 | bytes 50-99/* + "v1" | total=none | startOver
    date, left out though nobody compared | 206 | bytes 50-99/100 | version=dated if-range=ignored | startOver
    date changed | 206 | bytes 50-99/100 + last-modified: DATE | version=dated | startOver
    weak, no checksum | 206 | good | version=unknown | startOver
    bare with checksum | 206 | bytes 50-99/100 | version=bare checksum | append
    bare with checksum, total changed | 206 | bytes 50-98/99 | version=bare checksum | startOver
    weak with checksum, changed | 206 | bytes 50-99/100 + W/"v2" | version=weak checksum | startOver
    weak with checksum, same | 206 | bytes 50-99/100 + W/"v1" | version=weak checksum | append
    another mirror's etag with checksum | 206 | bytes 50-99/100 + "other" | checksum mirror=2 | append
    another mirror's etag without | 206 | bytes 50-99/100 + "other" | mirror=2 | startOver
    another mirror, same etag | 206 | good | mirror=2 | startOver
    another mirror, same etag, checksum | 206 | good | checksum mirror=2 | append
    piece from the middle | 206 | bytes 50-59/100 + "v1" | last=59 | append
    piece from the middle, total still not known | 206 | bytes 50-59/* + "v1" | last=59 total=none | askUnbounded
    piece from the middle, changed | 206 | bytes 50-59/100 + "v2" | last=59 | startOver
    resume, br | 200 | content-encoding: br | | bad-response
    resume, gzip in 206 | 206 | content-encoding: gzip + bytes 50-99/100 + "v1" | | useless
    other coding | 206 | content-encoding: gzip + bytes 50-99/100 + "v1" | checksum | startOver
    same coding | 206 | content-encoding: gzip + bytes 50-99/100 + "v1" | checksum coding=gzip | append
    kept, same coding | 206 | content-encoding: gzip + bytes 50-99/100 + "v1" | encoded=keep coding=gzip | append
    kept, other coding | 206 | content-encoding: gzip + bytes 50-99/100 + "v1" | encoded=keep | startOver
    kept, no coding any more | 206 | good | encoded=keep coding=gzip | startOver
    decoded from its start | 206 | content-encoding: gzip + bytes 50-99/100 + "v1" | encoded=decode | askDecoded
    """)

  private static let unsatisfiable = rows(
    """
    our length, validator | 416 | bytes */50 + "v1" | total=50 | complete
    our length, checksum | 416 | bytes */50 | version=bare total=none checksum | complete
    our length, date | 416 | bytes */50 + last-modified: EARLIER | version=dated total=50 | complete
    our length, total not known | 416 | bytes */50 + "v1" | total=none | startOver
    our length, but it was to be longer | 416 | bytes */50 + "v1" | | startOver
    the same with checksum | 416 | bytes */50 | checksum | startOver
    our length, nothing else | 416 | bytes */50 | total=50 | startOver
    our length, another etag | 416 | bytes */50 + "v2" | total=50 | startOver
    our length, weak etag | 416 | bytes */50 + W/"v1" | version=weak total=50 | startOver
    another length | 416 | bytes */100 + "v1" | | startOver
    another length, checksum | 416 | bytes */49 | checksum | startOver
    no range | 416 | "v1" | checksum | startOver
    a range | 416 | bytes 0-49/50 + "v1" | checksum | startOver
    garbage | 416 | bytes */5O + "v1" | checksum | startOver
    two ranges | 416 | bytes */50 + bytes */50 + "v1" | total=50 | startOver
    """)

  /// Answers to the first request of several: whether the others can follow.
  private static let firstPieces = rows(
    """
    piece | 206 | bytes 0-9/100 + "v1" | | append
    piece of what an earlier try began with | 206 | bytes 0-9/100 + "v2" | version=strong total=90 | append
    piece, smaller than asked for | 206 | bytes 0-4/100 + "v1" | | append
    piece that is all | 206 | bytes 0-99/100 | last=199 | append
    piece, date | 206 | bytes 0-9/100 + last-modified: EARLIER + date: DATE | | append
    piece, weak etag | 206 | bytes 0-9/100 + W/"v1" | | askUnbounded
    piece, no validator | 206 | bytes 0-9/100 | | askUnbounded
    piece, no validator but a checksum | 206 | bytes 0-9/100 | checksum | append
    piece, total * | 206 | bytes 0-9/* + "v1" | | askUnbounded
    piece, total * of what had one before | 206 | bytes 0-9/* + "v1" | version=strong | askUnbounded
    piece, another start | 206 | bytes 1-9/100 + "v1" | | askUnbounded
    piece, no Content-Range | 206 | "v1" | | askUnbounded
    piece, another total than declared | 206 | bytes 0-9/100 + "v1" | size=99 | mismatch-size
    piece, multipart | 206 | content-type: multipart/byteranges; boundary=x | | askUnbounded
    piece as 200, by its range | 200 | bytes 0-9/100 + 10 + "v1" | | append
    piece as 200, by its length | 200 | 10 + "v1" | | askUnbounded
    all, as long as a piece | 200 | 10 | size=10 | append
    no pieces | 200 | 100 | | append
    nothing to take a piece of | 416 | bytes */0 | | askUnbounded
    first piece, kept | 206 | content-encoding: gzip + bytes 0-9/100 + "v1" | encoded=keep | append
    first piece, refused | 206 | content-encoding: gzip + bytes 0-9/100 + "v1" | | askUnbounded
    """, with: "offset=0 last=9 version=unknown")

  /// Content codings, though none was asked for. The suffix of the file may say the same, or the job allows it.
  private static let encodings = rows(
    """
    two fields | 200 | content-encoding: identity + content-encoding: gzip | | encoded
    gzip of a .gz | 200 | 100 + content-encoding: gzip | target=/a.tar.gz | append
    x-gzip of a .gz | 200 | 100 + content-encoding: x-gzip | target=/a.TGZ | append
    gzip of a .gz, packed while it is sent | 200 | content-encoding: gzip | target=/a.gz | encoded
    twice | 200 | 9 + content-encoding: gzip, gzip | target=/a.gz | encoded
    br of a .gz | 200 | 100 + content-encoding: br | target=/a.gz | encoded
    gzip of a name in gz | 200 | 9 + content-encoding: gzip | target=/agz | encoded
    a digest decides | 200 | content-encoding: gzip + 100 + "v1" | checksum | append
    also without a length | 200 | content-encoding: gzip | checksum size=7 | append
    not against a size | 200 | content-encoding: gzip + 100 + "v1" | checksum size=99 | encoded
    a size decides | 200 | content-encoding: gzip + 100 + "v1" | size=100 | append
    which is not that of the file | 200 | content-encoding: gzip + 100 + "v1" | size=99 | encoded
    which shows nothing without a length | 200 | content-encoding: gzip | size=99 | encoded
    kept | 200 | content-encoding: gzip + 100 + "v1" | encoded=keep | append
    kept, of another size | 200 | content-encoding: gzip + 100 + "v1" | size=99 encoded=keep | mismatch-size
    decoded | 200 | content-encoding: gzip + 100 + "v1" | encoded=decode | askDecoded
    decoded, whatever the digest | 200 | content-encoding: gzip + 100 + "v1" | checksum encoded=decode | askDecoded
    nothing to decode | 200 | 100 | encoded=decode | append
    no coding to decode | 200 | content-encoding: utf-8 | encoded=decode | append
    """, with: "offset=0 version=unknown")

  private static func coded(_ words: [String], _ verdict: String) -> [VerdictCase] {
    words.map { word in
      VerdictCase(
        name: "coding \(word)", status: 200, fields: ["content-encoding: \(word)"], offset: 0, version: "unknown",
        verdict: verdict)
    }
  }

  /// What names no coding says nothing.
  private static let words = coded(
    [
      "identity", "Identity", "", "utf-8", "UTF8", "none", "binary", "aws-chunked", "iso-8859-1", "8bit", "null",
      "identity, ,none", "text/plain; charset=x", "\u{fffd}",
    ], "append")
  private static let codings = coded(
    ["gzip", "GZIP", "x-gzip", "br", "zstd", "deflate", "aws-chunked,gzip", "gzip;x=y", "compress", "xz"], "encoded")

  private static func answers(_ statuses: [Int], _ verdict: (Int) -> String) -> [VerdictCase] {
    statuses.map { VerdictCase(name: "status \($0)", status: $0, fields: good, verdict: verdict($0)) }
  }

  private static let unexpected = answers([201, 202, 203, 204, 205, 207, 226, 300, 301, 303, 304, 307, 399]) { _ in
    "bad-response"
  }
  private static let failures = answers([400, 401, 403, 404, 408, 410, 412, 425, 429, 451, 500, 503, 599, 999]) {
    "http-\($0)"
  }
}
