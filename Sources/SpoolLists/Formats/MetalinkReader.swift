internal import Spool

/// Metalink 4 (RFC 5854) and Metalink 3 (metalinker.org): files with their mirrors, sizes and digests.
final class MetalinkReader: XMLReader.Receiver {
  private let source: ByteSource
  private var xml: XMLReader?
  /// Names of the elements that are open; empty for one of another vocabulary.
  private var path: [String] = []
  private var attributes: [String: String] = [:]
  private var base = ""
  private var file: MetalinkFile?
  private var finished: [Result<ListedJob, Defect>] = []
  private var position = 0
  /// That of the outermost element: programs write several, such as `http://www.metalinker.org/` also with https.
  private var namespace = ""

  init(_ source: ByteSource) throws(Defect) {
    self.source = source
    xml = try XMLReader(self)
  }

  /// The next file, or what is wrong with it; nil at the end.
  /// - Throws: ``Defect`` where the rest cannot be read; ``SpoolError``.
  func next() throws -> Result<ListedJob, Defect>? {
    while position == finished.count {
      guard let xml else { return nil }
      (finished, position) = ([], 0)
      if let block = try source.next() {
        try xml.take(block, isLast: false)
      } else {
        try xml.take([], isLast: true)
        self.xml = nil
      }
    }
    defer { position += 1 }
    return finished[position]
  }

  func begin(_ element: XMLReader.Element, line: Int) throws(Defect) {
    if path.isEmpty { namespace = element.namespace }
    path.append(element.namespace == namespace ? element.name : "")
    (attributes, base) = (element.attributes, element.base)
    if path[0] != "metalink" { throw Defect(line: line, reason: "XML, but no Metalink file") }
    if isFile { file = MetalinkFile(name: element.attributes["name"], line: line) }
    if element.name == "pieces" { file?.beginPieces(element.attributes, line) }
  }

  func end(text: String, line: Int) throws(Defect) {
    defer { path.removeLast() }
    // Taken out, so that it is not copied with all its mirrors.
    guard var file = self.file.take() else { return }
    if isFile { return finished.append(file.job) }
    defer { self.file = file }
    let text = text.trimmedAsXML
    var url: String { text.isEmpty ? text : resolved(text, against: base) }
    // RFC 5854: file/hash, file/url; version 3: file/verification/hash, file/resources/url.
    switch path.drop(while: { $0 != "file" }).dropFirst().joined(separator: "/") {
    case "size": file.take(size: text, line)
    case "hash", "verification/hash": file.take(hash: text, type: attributes["type"] ?? "", line)
    case "pieces/hash", "verification/pieces/hash": file.take(piece: text, number: attributes["piece"])
    case "url": file.take(url: url, rank: attributes["priority"].flatMap { Int($0) } ?? 999_999, line)
    case "resources/url":
      // Others are torrents and the like.
      if attributes["type"].map({ ["http", "https", "ftp", "ftps", "sftp"].contains($0) }) ?? true {
        file.take(url: url, rank: -(attributes["preference"].flatMap { Int32($0) }.map { Int($0) } ?? -1), line)
      }
    default: break
    }
  }

  private var isFile: Bool { path == ["metalink", "file"] || path == ["metalink", "files", "file"] }
}

private struct MetalinkFile {
  let name: String?
  let line: Int
  var defect: Defect?
  var request = JobRequest()
  var pieces: [Pieces] = []
  /// The lower the rank, the better.
  var mirrors: [(rank: Int, url: String, line: Int)] = []

  mutating func take(size: String, _ line: Int) {
    do throws(Defect) { try request.set(.size, size, line: line) } catch { defect = defect ?? error }
  }

  /// A hash of an unknown type, or one that this machine cannot compute, is left out: others may be known.
  mutating func take(hash: String, type: String, _ line: Int) {
    guard let algorithm = DigestAlgorithm(title: type), algorithm.isAvailable else { return }
    do throws(Defect) {
      guard let digest = Digest(algorithm, hash) else {
        throw Defect(line: line, reason: "hash: must be \(algorithm.wanted)")
      }
      try request.declare(digest, line: line)
    } catch { defect = defect ?? error }
  }

  struct Pieces {
    let algorithm: DigestAlgorithm
    let length: UInt64
    let line: Int
    var digests: [Digest] = []
    /// Some of them cannot be read, or are more than a list may have.
    var isUseless = false
  }

  /// Those of an unknown type are left out, as hashes are.
  mutating func beginPieces(_ attributes: [String: String], _ line: Int) {
    guard let algorithm = DigestAlgorithm(title: attributes["type"] ?? ""), let length = attributes["length"] else {
      return takesPieces = false
    }
    takesPieces = true
    pieces.append(Pieces(algorithm: algorithm, length: decimal(length) ?? 0, line: line))
  }

  var takesPieces = false

  /// - Parameter number: from 0, as version 3 has it.
  mutating func take(piece: String, number: String?) {
    guard takesPieces, var last = pieces.popLast() else { return }
    defer { pieces.append(last) }
    let isNext = number.map { Int($0) == last.digests.count } ?? true
    guard !last.isUseless, isNext, let digest = Digest(last.algorithm, piece),
      last.digests.count * (last.algorithm.digits + 1) < PieceList.longest
    else { return last.isUseless = true }
    last.digests.append(digest)
  }

  /// By the strongest algorithm. One that cannot be used, or whose pieces are too short or too long, is left out.
  private func pieceList() throws(Defect) -> PieceList? {
    for algorithm in DigestAlgorithm.byStrength {
      guard let found = pieces.first(where: { $0.algorithm == algorithm && !$0.isUseless }),
        let list = PieceList(algorithm, length: found.length, found.digests)
      else { continue }
      guard request.expected.size.map(list.sizes.contains) ?? true else {
        throw Defect(line: found.line, reason: "pieces: \(list.count) of \(found.length) bytes are not of this size")
      }
      return list
    }
    return nil
  }

  mutating func take(url: String, rank: Int, _ line: Int) { mirrors.append((rank, url, line)) }

  /// A failure where it has no URL that can be fetched, or a name that is no output.
  var job: Result<ListedJob, Defect> { Result { () throws(Defect) in try listed() } }

  private func listed() throws(Defect) -> ListedJob {
    if let defect { throw defect }
    guard let name else { throw Defect(line: line, reason: "a file without a name") }
    var job = ListedJob(request, line: line)
    try job.request.place(at: name, line: line)
    // A worker fetches other schemes only where it is told so.
    let fetched = [["http", "https"], ["ftp", "ftps", "sftp"]].lazy.map { schemes in
      mirrors.filter { schemes.contains($0.url.prefix(before: ":").lowercasedASCII) }
    }.first { !$0.isEmpty }
    guard let fetched else {
      throw Defect(line: line, reason: "the file `\(escaped(name))` has no URL of http, https, ftp, ftps or sftp")
    }
    let order = fetched.sorted { $0.rank < $1.rank }
    let kept = JobRequest.mirrors(order.map(\.url)).count
    for mirror in order.prefix(kept) { try job.request.add(url: mirror.url, line: mirror.line) }
    // Only the strongest (RFC 5854 section 4.2.4).
    let strongest = DigestAlgorithm.byStrength.lazy.compactMap { request.expected.digests[$0] }.first
    if let strongest { job.request.expected.digests = Digests(strongest) }
    job.pieces = try pieceList()
    return job
  }
}
