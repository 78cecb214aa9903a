/// Answers of a part of the file (RFC 9110 section 15.3.7).
extension VerdictCase {
  static let partial = [
    VerdictCase(
      name: "a range beyond the known size, no total", status: 206,
      fields: ["content-range: bytes 50-100/*", "etag: \"v1\""], verdict: "startOver"),
    VerdictCase(
      name: "a range to the known size, no total", status: 206,
      fields: ["content-range: bytes 50-99/*", "etag: \"v1\""], verdict: "append"),
    VerdictCase(name: "right", status: 206, fields: good, verdict: "append"),
    VerdictCase(
      name: "right, less than asked for", status: 206, fields: ["content-range: bytes 50-59/100", "etag: \"v1\""],
      verdict: "append"),
    VerdictCase(
      name: "right, total *", status: 206, fields: ["content-range: bytes 50-99/*", "etag: \"v1\""], verdict: "append"),
    VerdictCase(
      name: "right, unit in capitals", status: 206, fields: ["content-range: BYTES 50-99/100", "etag: \"v1\""],
      verdict: "append"),
    VerdictCase(name: "no Content-Range", status: 206, fields: ["etag: \"v1\""], verdict: "useless"),
    VerdictCase(name: "two", status: 206, fields: good + ["content-range: bytes 50-99/100"], verdict: "useless"),
    VerdictCase(
      name: "another unit", status: 206, fields: ["content-range: items 50-99/100", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "starts before", status: 206, fields: ["content-range: bytes 49-99/100", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "starts behind", status: 206, fields: ["content-range: bytes 51-99/100", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "starts at 0", status: 206, fields: ["content-range: bytes 0-99/100", "etag: \"v1\""], verdict: "useless"),
    VerdictCase(
      name: "last before first", status: 206, fields: ["content-range: bytes 50-49/100", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "beyond total", status: 206, fields: ["content-range: bytes 50-100/100", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "overflow", status: 206, fields: ["content-range: bytes 50-99/18446744073709551716", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "unsatisfied form", status: 206, fields: ["content-range: bytes */100", "etag: \"v1\""],
      verdict: "useless"),
    VerdictCase(
      name: "total changed", status: 206, fields: ["content-range: bytes 50-109/110", "etag: \"v1\""],
      verdict: "startOver"),
    VerdictCase(
      name: "length and range disagree", status: 206,
      fields: ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 49"],
      verdict: "useless"),
    VerdictCase(
      name: "chunked: length means nothing", status: 206,
      fields: ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 49", "transfer-encoding: chunked"],
      verdict: "append"),
    VerdictCase(
      name: "etag changed", status: 206, fields: ["content-range: bytes 50-99/100", "etag: \"v2\""],
      verdict: "startOver"),
    VerdictCase(
      name: "etag turned weak", status: 206, fields: ["content-range: bytes 50-99/100", "etag: W/\"v1\""],
      verdict: "startOver"),
    VerdictCase(name: "etag gone", status: 206, fields: ["content-range: bytes 50-99/100"], verdict: "startOver"),
    VerdictCase(name: "two etags", status: 206, fields: good + ["etag: \"v1\""], verdict: "startOver"),
    VerdictCase(
      name: "multipart", status: 206, fields: good + ["content-type: Multipart/ByteRanges; boundary=x"],
      verdict: "useless"),
    VerdictCase(name: "gzip range", status: 206, fields: good + ["content-encoding: gzip"], verdict: "useless"),
    VerdictCase(
      name: "gzip range of a .gz", status: 206, fields: good + ["content-encoding: gzip"], target: "/a.gz",
      verdict: "append"),
    VerdictCase(name: "another total than declared", status: 206, fields: good, size: 99, verdict: "mismatch-size"),
    VerdictCase(
      name: "total *, and what is known is another than declared", status: 206,
      fields: ["content-range: bytes 50-99/*", "etag: \"v1\""], size: 99, verdict: "mismatch-size"),
    VerdictCase(
      name: "date, same", status: 206, fields: ["content-range: bytes 50-99/100", "last-modified: \(earlier)"],
      version: "dated",
      verdict: "append"),
    VerdictCase(
      name: "date, left out", status: 206, fields: ["content-range: bytes 50-99/100"], version: "dated",
      verdict: "append"),
    VerdictCase(
      name: "date, left out by a mirror that may never have compared", status: 206,
      fields: ["content-range: bytes 50-99/100"], version: "dated", mirror: 2, verdict: "startOver"),
    VerdictCase(
      name: "no total, and none known", status: 206, fields: ["content-range: bytes 50-99/*", "etag: \"v1\""],
      total: nil,
      verdict: "startOver"),
    VerdictCase(
      name: "date, left out though nobody compared", status: 206, fields: ["content-range: bytes 50-99/100"],
      version: "dated",
      ifRangeIgnored: true, verdict: "startOver"),
    VerdictCase(
      name: "date changed", status: 206, fields: ["content-range: bytes 50-99/100", "last-modified: \(date)"],
      version: "dated",
      verdict: "startOver"),
    VerdictCase(name: "weak, no checksum", status: 206, fields: good, version: "unknown", verdict: "startOver"),
    VerdictCase(
      name: "bare with checksum", status: 206, fields: ["content-range: bytes 50-99/100"], version: "bare",
      checksum: true, verdict: "append"),
    VerdictCase(
      name: "bare with checksum, total changed", status: 206, fields: ["content-range: bytes 50-98/99"],
      version: "bare", checksum: true,
      verdict: "startOver"),
    VerdictCase(
      name: "weak with checksum, changed", status: 206, fields: ["content-range: bytes 50-99/100", "etag: W/\"v2\""],
      version: "weak",
      checksum: true, verdict: "startOver"),
    VerdictCase(
      name: "weak with checksum, same", status: 206, fields: ["content-range: bytes 50-99/100", "etag: W/\"v1\""],
      version: "weak",
      checksum: true, verdict: "append"),
    VerdictCase(
      name: "another mirror's etag with checksum", status: 206,
      fields: ["content-range: bytes 50-99/100", "etag: \"other\""],
      checksum: true, mirror: 2, verdict: "append"),
    VerdictCase(
      name: "another mirror's etag without", status: 206,
      fields: ["content-range: bytes 50-99/100", "etag: \"other\""], mirror: 2,
      verdict: "startOver"),
    // An ETag is unique within one resource only (RFC 9110 section 8.8.1).
    VerdictCase(name: "another mirror, same etag", status: 206, fields: good, mirror: 2, verdict: "startOver"),
    VerdictCase(
      name: "another mirror, same etag, checksum", status: 206, fields: good, checksum: true, mirror: 2,
      verdict: "append"),
  ]

  /// Answers to the first request of several: whether the others can follow.
  static let firstPieces = [
    VerdictCase(
      name: "piece", status: 206, fields: ["content-range: bytes 0-9/100", "etag: \"v1\""], offset: 0, last: 9,
      version: "unknown", verdict: "append"),
    VerdictCase(
      name: "piece of what an earlier try began with", status: 206,
      fields: ["content-range: bytes 0-9/100", "etag: \"v2\""], offset: 0, last: 9, total: 90, verdict: "append"),
    VerdictCase(
      name: "piece, smaller than asked for", status: 206, fields: ["content-range: bytes 0-4/100", "etag: \"v1\""],
      offset: 0, last: 9, version: "unknown", verdict: "append"),
    VerdictCase(
      name: "piece that is all", status: 206, fields: ["content-range: bytes 0-99/100"], offset: 0, last: 199,
      version: "unknown", verdict: "append"),
    VerdictCase(
      name: "piece, date", status: 206,
      fields: ["content-range: bytes 0-9/100", "last-modified: \(earlier)", "date: \(date)"], offset: 0, last: 9,
      version: "unknown", verdict: "append"),
    VerdictCase(
      name: "piece, weak etag", status: 206, fields: ["content-range: bytes 0-9/100", "etag: W/\"v1\""], offset: 0,
      last: 9, version: "unknown", verdict: "askUnbounded"),
    VerdictCase(
      name: "piece, no validator", status: 206, fields: ["content-range: bytes 0-9/100"], offset: 0, last: 9,
      version: "unknown", verdict: "askUnbounded"),
    VerdictCase(
      name: "piece, no validator but a checksum", status: 206, fields: ["content-range: bytes 0-9/100"], offset: 0,
      last: 9, version: "unknown", checksum: true, verdict: "append"),
    VerdictCase(
      name: "piece, total *", status: 206, fields: ["content-range: bytes 0-9/*", "etag: \"v1\""], offset: 0, last: 9,
      version: "unknown", verdict: "askUnbounded"),
    VerdictCase(
      name: "piece, total * of what had one before", status: 206,
      fields: ["content-range: bytes 0-9/*", "etag: \"v1\""], offset: 0, last: 9, verdict: "askUnbounded"),
    VerdictCase(
      name: "piece, another start", status: 206, fields: ["content-range: bytes 1-9/100", "etag: \"v1\""], offset: 0,
      last: 9, version: "unknown", verdict: "askUnbounded"),
    VerdictCase(
      name: "piece, no Content-Range", status: 206, fields: ["etag: \"v1\""], offset: 0, last: 9, version: "unknown",
      verdict: "askUnbounded"),
    VerdictCase(
      name: "piece, another total than declared", status: 206,
      fields: ["content-range: bytes 0-9/100", "etag: \"v1\""], offset: 0, last: 9, version: "unknown", size: 99,
      verdict: "mismatch-size"),
    VerdictCase(
      name: "piece, multipart", status: 206, fields: ["content-type: multipart/byteranges; boundary=x"], offset: 0,
      last: 9, version: "unknown", verdict: "askUnbounded"),
    VerdictCase(
      name: "piece as 200, by its range", status: 200,
      fields: ["content-range: bytes 0-9/100", "content-length: 10", "etag: \"v1\""], offset: 0, last: 9,
      version: "unknown", verdict: "append"),
    VerdictCase(
      name: "piece as 200, by its length", status: 200, fields: ["content-length: 10", "etag: \"v1\""], offset: 0,
      last: 9, version: "unknown", verdict: "askUnbounded"),
    VerdictCase(
      name: "all, as long as a piece", status: 200, fields: ["content-length: 10"], offset: 0, last: 9,
      version: "unknown", size: 10, verdict: "append"),
    VerdictCase(
      name: "no pieces", status: 200, fields: ["content-length: 100"], offset: 0, last: 9, version: "unknown",
      verdict: "append"),
    VerdictCase(
      name: "nothing to take a piece of", status: 416, fields: ["content-range: bytes */0"], offset: 0, last: 9,
      version: "unknown", verdict: "askUnbounded"),
    VerdictCase(
      name: "piece from the middle", status: 206, fields: ["content-range: bytes 50-59/100", "etag: \"v1\""], last: 59,
      verdict: "append"),
    VerdictCase(
      name: "piece from the middle, total still not known", status: 206,
      fields: ["content-range: bytes 50-59/*", "etag: \"v1\""], last: 59, total: nil, verdict: "askUnbounded"),
    VerdictCase(
      name: "piece from the middle, changed", status: 206,
      fields: ["content-range: bytes 50-59/100", "etag: \"v2\""], last: 59, verdict: "startOver"),
  ]
}
