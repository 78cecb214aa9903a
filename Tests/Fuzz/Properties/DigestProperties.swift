internal import Spool
internal import SpoolWorker
internal import Transfer

/// The fields of a response, one a line: what they state of the file's digests. Held against each status that a file
/// comes with.
func checkDigests(_ bytes: [UInt8]) throws(Violation) {
  for (status, ranges) in [(200, []), (206, ["bytes 0-9/10"]), (206, ["bytes 5-9/10"]), (404, [])] {
    guard let head = head(bytes, status: status, ranges: ranges) else { return }
    let stated = try response(head).digests
    for digest in stated {
      try require(
        digest.base64.utf8.count <= 88 && digest.base64.utf8.allSatisfy { (0x21...0x7E).contains($0) },
        "a digest that is no base64")
      try require(
        head.fields.contains { $0.name != "etag" && $0.value.contains(digest.base64) }, "a digest that no field has")
    }
    try require(Set(stated.map(\.algorithm)).count == stated.count, "two digests by one algorithm")
    try require(status != 404 || stated.isEmpty, "a digest of what is no file")
    let isCoded = head.values("content-encoding").contains { value in
      value.split(separator: ",").contains { !["", "identity"].contains(blankless($0).lowercased()) }
    }
    try require(!isCoded || stated.isEmpty, "a digest of an encoded file")
    try require(same(try response(without(head, ["etag", "content-type"])).digests, stated), "a digest from elsewhere")
    if ranges == ["bytes 5-9/10"] {
      let ofThePart = head.fields.map(\.name).filter { $0.hasPrefix("x-amz-") } + ["content-md5", "content-digest"]
      try require(same(try response(without(head, ofThePart)).digests, stated), "a part's digest is the file's")
    }
    try checkJournal(RemoteVersion(try response(head), mirror: 1))
  }
}

/// What is stated is read back from the journal as it was written.
private func checkJournal(_ version: RemoteVersion) throws(Violation) {
  let line = JournalLine.response(version, at: 0, part: 1).text
  let read = Array("https://h/a\n\(line)".utf8).withUnsafeBytes { JobText($0) }.journal.data.version
  try require(read?.stated == version.stated, "a digest is written as another")
  let request = JobRequest()
  let checked = request.expected.checkedDigests(of: version)
  try require(checked.isEmpty == version.stated.isEmpty, "a digest is not checked")
  try require(!checked.contradict(version.stated), "another digest than the stated one is checked")
  try require(
    checked.algorithms.isSubset(of: request.computedDigests(for: version)),
    "what is not computed is checked")
}

private func head(_ bytes: [UInt8], status: Int, ranges: [String]) -> ResponseHead? {
  var reader = HeadReader()
  let fields =
    ranges.map { Array("Content-Range: \($0)\r\n".utf8) } + lines(bytes).filter { $0 != [0x0A] && $0 != [0x0D, 0x0A] }
  for line in [Array("HTTP/1.1 \(status) x\r\n".utf8)] + fields + [[0x0D, 0x0A]] {
    if case .head(let head) = line.withUnsafeBytes({ reader.take($0) }) { return head.status == status ? head : nil }
  }
  return nil
}

private func response(_ head: ResponseHead) throws(Violation) -> Response {
  do throws(URLProblem) {
    return Response(head, from: try URLParts("http://h/f"), now: 1_795_248_000)
  } catch {
    throw Violation(description: error.reason)
  }
}

private func without(_ head: ResponseHead, _ names: [String]) -> ResponseHead {
  ResponseHead(status: head.status, fields: head.fields.filter { !names.contains($0.name) })
}

private func same(_ left: [StatedDigest], _ right: [StatedDigest]) -> Bool { Set(left) == Set(right) }

private func blankless(_ text: Substring) -> String { text.filter { $0 != " " && $0 != "\t" } }
