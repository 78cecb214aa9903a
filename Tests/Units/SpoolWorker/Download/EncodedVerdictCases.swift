import Spool

extension VerdictCase {
  private static let gzip = ["content-encoding: gzip", "content-length: 100", "etag: \"v1\""]
  private static let part = ["content-encoding: gzip", "content-range: bytes 50-99/100", "etag: \"v1\""]

  private static func fresh(
    _ name: String, _ fields: [String], checksum: Bool = false, size: UInt64? = nil, encoded: EncodedBody? = nil,
    target: String? = nil, _ verdict: String
  ) -> VerdictCase {
    VerdictCase(
      name: name, status: 200, fields: fields, offset: 0, version: "unknown", checksum: checksum, size: size,
      encoded: encoded, target: target, verdict: verdict)
  }

  /// Content codings, though none was asked for.
  static let encodings = words + ofTheFile + asTheJobSays + resumed

  /// What names no coding says nothing.
  private static let words =
    [
      "identity", "Identity", "", "utf-8", "UTF8", "none", "binary", "aws-chunked", "iso-8859-1", "8bit", "null",
      "identity, ,none", "text/plain; charset=x", "\u{fffd}",
    ].map { fresh("word \($0)", ["content-encoding: \($0)"], "append") }
    + ["gzip", "GZIP", "x-gzip", "br", "zstd", "deflate", "aws-chunked,gzip", "gzip;x=y", "compress", "xz"].map {
      fresh("coding \($0)", ["content-encoding: \($0)"], "encoded")
    } + [fresh("two fields", ["content-encoding: identity", "content-encoding: gzip"], "encoded")]

  /// The suffix of the file says the same.
  private static let ofTheFile = [
    fresh("gzip of a .gz", ["content-length: 100", "content-encoding: gzip"], target: "/a.tar.gz", "append"),
    fresh("x-gzip of a .gz", ["content-length: 100", "content-encoding: x-gzip"], target: "/a.TGZ", "append"),
    fresh("gzip of a .gz, packed while it is sent", ["content-encoding: gzip"], target: "/a.gz", "encoded"),
    fresh("twice", ["content-length: 9", "content-encoding: gzip, gzip"], target: "/a.gz", "encoded"),
    fresh("br of a .gz", ["content-length: 100", "content-encoding: br"], target: "/a.gz", "encoded"),
    fresh("gzip of a name in gz", ["content-length: 9", "content-encoding: gzip"], target: "/agz", "encoded"),
  ]

  private static let asTheJobSays = [
    fresh("a digest decides", gzip, checksum: true, "append"),
    fresh("also without a length", ["content-encoding: gzip"], checksum: true, size: 7, "append"),
    fresh("not against a size", gzip, checksum: true, size: 99, "encoded"),
    fresh("a size decides", gzip, size: 100, "append"),
    fresh("which is not that of the file", gzip, size: 99, "encoded"),
    fresh("which shows nothing without a length", ["content-encoding: gzip"], size: 99, "encoded"),
    fresh("kept", gzip, encoded: .keep, "append"),
    fresh("kept, of another size", gzip, size: 99, encoded: .keep, "mismatch-size"),
    fresh("decoded", gzip, encoded: .decode, "askDecoded"),
    fresh("decoded, whatever the digest", gzip, checksum: true, encoded: .decode, "askDecoded"),
    fresh("nothing to decode", ["content-length: 100"], encoded: .decode, "append"),
    fresh("no coding to decode", ["content-encoding: utf-8"], encoded: .decode, "append"),
  ]

  /// What is continued is in the same coding.
  private static let resumed = [
    VerdictCase(name: "resume, br", status: 200, fields: ["content-encoding: br"], verdict: "bad-response"),
    VerdictCase(name: "resume, gzip in 206", status: 206, fields: part, verdict: "useless"),
    VerdictCase(name: "other coding", status: 206, fields: part, checksum: true, verdict: "startOver"),
    VerdictCase(name: "same coding", status: 206, fields: part, checksum: true, coding: "gzip", verdict: "append"),
    VerdictCase(
      name: "kept, same coding", status: 206, fields: part, encoded: .keep, coding: "gzip", verdict: "append"),
    VerdictCase(name: "kept, other coding", status: 206, fields: part, encoded: .keep, verdict: "startOver"),
    VerdictCase(
      name: "kept, no coding any more", status: 206, fields: good, encoded: .keep, coding: "gzip",
      verdict: "startOver"),
    VerdictCase(
      name: "decoded from its start", status: 206, fields: part, encoded: .decode, verdict: "askDecoded"),
    VerdictCase(
      name: "first piece, kept", status: 206,
      fields: ["content-encoding: gzip", "content-range: bytes 0-9/100", "etag: \"v1\""], offset: 0, last: 9,
      version: "unknown", encoded: .keep, verdict: "append"),
    VerdictCase(
      name: "first piece, refused", status: 206,
      fields: ["content-encoding: gzip", "content-range: bytes 0-9/100", "etag: \"v1\""], offset: 0, last: 9,
      version: "unknown", verdict: "askUnbounded"),
  ]
}
