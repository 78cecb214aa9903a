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
  static let good = ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 50"]

  static let fresh = [
    VerdictCase(
      name: "whole", status: 200, fields: ["content-length: 100"], offset: 0, version: "unknown", verdict: "append"),
    VerdictCase(
      name: "whole without length", status: 200, fields: [], offset: 0, version: "unknown", verdict: "append"),
    VerdictCase(
      name: "empty", status: 200, fields: ["content-length: 0"], offset: 0, version: "unknown", verdict: "append"),
    VerdictCase(
      name: "another size than declared", status: 200, fields: ["content-length: 99"], offset: 0, size: 100,
      verdict: "mismatch-size"),
    VerdictCase(
      name: "the declared size", status: 200, fields: ["content-length: 100"], offset: 0, size: 100, verdict: "append"),
    VerdictCase(
      name: "206 unasked, of a part", status: 206, fields: ["content-range: bytes 0-49/100"], offset: 0,
      version: "unknown", verdict: "bad-response"),
    VerdictCase(
      name: "206 unasked, of all", status: 206, fields: ["content-range: bytes 0-99/100"], offset: 0,
      version: "unknown", verdict: "append"),
    VerdictCase(
      name: "206 unasked, of another size than declared", status: 206, fields: ["content-range: bytes 0-99/100"],
      offset: 0, version: "unknown", size: 99, verdict: "mismatch-size"),
    VerdictCase(
      name: "206 unasked, total *", status: 206, fields: ["content-range: bytes 0-99/*"], offset: 0,
      version: "unknown", verdict: "bad-response"),
    VerdictCase(
      name: "a part as 200, unasked", status: 200, fields: good, offset: 0, version: "unknown",
      verdict: "bad-response"),
    VerdictCase(
      name: "whole, with its range", status: 200, fields: ["content-range: bytes 0-99/100", "content-length: 100"],
      offset: 0, version: "unknown", verdict: "append"),
    VerdictCase(
      name: "416 unasked", status: 416, fields: ["content-range: bytes */100"], offset: 0, version: "unknown",
      verdict: "bad-response"),
  ]

  static let whole = [
    VerdictCase(
      name: "changed", status: 200, fields: ["content-length: 90", "etag: \"v2\""], verdict: "replace, dropped"),
    VerdictCase(
      name: "range ignored", status: 200, fields: ["content-length: 100", "etag: \"v1\""], verdict: "replace, dropped"),
    VerdictCase(name: "a part as 200, by its range", status: 200, fields: good, verdict: "append"),
    VerdictCase(
      name: "a part as 200, by its range alone", status: 200,
      fields: ["content-range: bytes 50-99/100", "etag: \"v1\"", "transfer-encoding: chunked"], verdict: "useless"),
    VerdictCase(
      name: "a part as 200, changed", status: 200,
      fields: ["content-range: bytes 50-99/100", "etag: \"v2\"", "content-length: 50"], verdict: "startOver"),
    VerdictCase(
      name: "whole, with a range", status: 200,
      fields: ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 100"],
      verdict: "replace, dropped"),
    VerdictCase(
      name: "a part as 200, by its length", status: 200, fields: ["content-length: 50", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "a part as 200, by its length alone", status: 200, fields: ["content-length: 50"], verdict: "useless"),
    VerdictCase(
      name: "a part as 200, by its length and the declared size", status: 200,
      fields: ["content-length: 50", "etag: \"v1\""], total: nil, size: 100, verdict: "useless"),
    VerdictCase(
      name: "resume, another size than declared", status: 200, fields: ["content-length: 99", "etag: \"v2\""],
      size: 100, verdict: "mismatch-size"),
    VerdictCase(
      name: "no validator where there was one", status: 200, fields: ["content-length: 100"], verdict: "other-kind"),
    VerdictCase(
      name: "much smaller than what is here", status: 200, fields: ["content-length: 24", "etag: \"v2\""],
      verdict: "other-kind"),
    VerdictCase(
      name: "another type", status: 200,
      fields: ["content-length: 100", "etag: \"v2\"", "content-type: text/html; charset=utf-8"],
      verdict: "other-kind"),
    VerdictCase(
      name: "the same type", status: 200,
      fields: ["content-length: 100", "etag: \"v2\"", "content-type: Application/Zip; x=y"],
      verdict: "replace, dropped"),
    VerdictCase(
      name: "data that nothing could go on with", status: 200, fields: ["content-length: 100"], version: "bare",
      verdict: "replace, dropped"),
    VerdictCase(
      name: "another mirror", status: 200, fields: ["content-length: 100", "etag: \"v1\""], mirror: 2,
      verdict: "replace, kept"),
  ]

  static let unsatisfiable = [
    VerdictCase(
      name: "our length, validator", status: 416, fields: ["content-range: bytes */50", "etag: \"v1\""], total: 50,
      verdict: "complete"),
    VerdictCase(
      name: "our length, checksum", status: 416, fields: ["content-range: bytes */50"], version: "bare", total: nil,
      checksum: true, verdict: "complete"),
    VerdictCase(
      name: "our length, date", status: 416, fields: ["content-range: bytes */50", "last-modified: \(earlier)"],
      version: "dated", total: 50,
      verdict: "complete"),
    VerdictCase(
      name: "our length, total not known", status: 416, fields: ["content-range: bytes */50", "etag: \"v1\""],
      total: nil, verdict: "startOver"),
    VerdictCase(
      name: "our length, but it was to be longer", status: 416, fields: ["content-range: bytes */50", "etag: \"v1\""],
      verdict: "startOver"),
    VerdictCase(
      name: "the same with checksum", status: 416, fields: ["content-range: bytes */50"], checksum: true,
      verdict: "startOver"),
    VerdictCase(
      name: "our length, nothing else", status: 416, fields: ["content-range: bytes */50"], total: 50,
      verdict: "startOver"),
    VerdictCase(
      name: "our length, another etag", status: 416, fields: ["content-range: bytes */50", "etag: \"v2\""], total: 50,
      verdict: "startOver"),
    VerdictCase(
      name: "our length, weak etag", status: 416, fields: ["content-range: bytes */50", "etag: W/\"v1\""],
      version: "weak", total: 50,
      verdict: "startOver"),
    VerdictCase(
      name: "another length", status: 416, fields: ["content-range: bytes */100", "etag: \"v1\""],
      verdict: "startOver"),
    VerdictCase(
      name: "another length, checksum", status: 416, fields: ["content-range: bytes */49"], checksum: true,
      verdict: "startOver"),
    VerdictCase(name: "no range", status: 416, fields: ["etag: \"v1\""], checksum: true, verdict: "startOver"),
    VerdictCase(
      name: "a range", status: 416, fields: ["content-range: bytes 0-49/50", "etag: \"v1\""], checksum: true,
      verdict: "startOver"),
    VerdictCase(
      name: "garbage", status: 416, fields: ["content-range: bytes */5O", "etag: \"v1\""], checksum: true,
      verdict: "startOver"),
    VerdictCase(
      name: "two ranges", status: 416,
      fields: ["content-range: bytes */50", "content-range: bytes */50", "etag: \"v1\""], total: 50,
      verdict: "startOver"),
  ]

  static let all = fresh + whole + partial + unsatisfiable + firstPieces + encodings + others

  static let others =
    [201, 202, 203, 204, 205, 207, 226, 300, 301, 303, 304, 307, 399].map { status in
      VerdictCase(name: "status \(status)", status: status, fields: good, verdict: "bad-response")
    }
    + [400, 401, 403, 404, 408, 410, 412, 425, 429, 451, 500, 503, 599, 999].map { status in
      VerdictCase(name: "status \(status)", status: status, fields: good, verdict: "http-\(status)")
    }
}
