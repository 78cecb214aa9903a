internal import Glibc
internal import Spool
internal import SystemPackage

/// fetch.txt of a BagIt bag, with the digests of the manifest beside it.
struct BagItList: LineFormat {
  let manifest: BagManifest?

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    if line.content.isEmpty { return nil }
    guard let item = BagItLine(line.text[...]) else {
      throw Defect(line: line.number, reason: "must be a URL, a length or `-`, and a path, as in a bag's fetch.txt")
    }
    var job = ListedJob(line: line.number)
    try job.request.add(url: item.url, line: line.number)
    if item.size != "-" { try job.request.set(.size, String(item.size), line: line.number) }
    guard item.path.begins(with: "data/") else {
      throw Defect(line: line.number, reason: "a path that is not below data/: a bag fetches only its payload")
    }
    try job.request.place(at: item.path, line: line.number)
    guard let manifest else { return job }
    guard let digest = manifest.digest(of: item.path) else {
      throw Defect(line: line.number, reason: "`\(escaped(item.path))` is not in \(manifest.name)")
    }
    try job.request.declare(digest, line: line.number)
    return job
  }

  mutating func finish() -> ListedJob? { nil }
}

/// The manifest of a bag: a digest and a path in each line (RFC 8493 section 2.1.3). Keeps only where each line is,
/// so that a million of them take little memory.
final class BagManifest {
  let name: String
  private let algorithm: DigestAlgorithm
  private let file: PlainFile
  /// By the path.
  private var offsets: [Int: Int] = [:]

  /// The manifest in `directory` with the strongest digest; nil where there is none.
  /// - Parameter directory: empty, or with a slash at the end.
  /// - Throws: ``Defect``, ``SpoolError``.
  static func beside(_ directory: [UInt8]) throws -> BagManifest? {
    for algorithm in DigestAlgorithm.byStrength where algorithm != .crc32 {
      // Without a hyphen (RFC 8493 section 2.4).
      let name = "manifest-\(algorithm.rawValue.split(at: "-").joined()).txt"
      if let file = try orNil(PlainFile.open(directory + Array(name.utf8)), on: .noSuchFileOrDirectory) {
        return try BagManifest(algorithm, name, file)
      }
    }
    return nil
  }

  private init(_ algorithm: DigestAlgorithm, _ name: String, _ file: PlainFile) throws {
    (self.name, self.algorithm, self.file) = (name, algorithm, file)
    var lines = LineReader(ByteSource(file))
    do {
      var offset = 0
      while let line = try lines.next() {
        defer { offset = lines.offset }
        if let defect = line.defect { throw defect }
        if line.content.isEmpty { continue }
        guard let (digest, path) = Self.parse(line.text, algorithm) else {
          throw Defect(line: line.number, reason: "must be the \(algorithm.title) and the path of a file")
        }
        if let known = self.digest(of: path), known != digest {
          throw Defect(
            line: line.number, reason: "two different values of \(algorithm.rawValue) for `\(escaped(path))`")
        }
        offsets[Fingerprint(path).low] = offset
      }
    } catch let defect as Defect {
      throw Defect(line: nil, reason: "\(name): \(defect)")
    }
  }

  /// The digest of the file at `path` in the bag; nil where the manifest does not list it.
  func digest(of path: String) -> Digest? {
    guard let offset = offsets[Fingerprint(path).low] else { return nil }
    var line = [UInt8](unsafeUninitializedCapacity: 4096 + 200) { buffer, count in
      count = max(0, pread(file.descriptor, buffer.baseAddress, buffer.count, off_t(offset)))
    }.prefix { $0 != 0x0A && $0 != 0x0D }
    // A byte order mark.
    if offset == 0, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
    guard let (digest, found) = Self.parse(String(decoding: line, as: UTF8.self), algorithm),
      found.utf8.elementsEqual(path.utf8)
    else { return nil }
    return digest
  }

  private static func parse(_ line: String, _ algorithm: DigestAlgorithm) -> (Digest, String)? {
    let parts = line.utf8.split(maxSplits: 1, whereSeparator: isBlank).map(Substring.init)
    guard parts.count == 2, let digest = Digest(algorithm, String(parts[0])) else { return nil }
    // As md5sum(1) marks binary files, which older tools left in.
    let path = trimmed(parts[1])
    return (digest, BagItLine.decoded(path.begins(with: "*") ? path.dropFirstBytes() : path))
  }
}

/// A line of fetch.txt: the URL, the length or `-`, the file's path in the bag (RFC 8493 section 2.2.3).
struct BagItLine {
  let url: Substring
  let size: Substring
  let path: String

  init?(_ line: Substring) {
    let parts = line.utf8.split(maxSplits: 2, whereSeparator: isBlank).map(Substring.init)
    guard parts.count == 3, LineLooks.isURL(parts[0]),
      parts[1] == "-" || parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    (url, size) = (parts[0], parts[1])
    path = Self.decoded(trimmed(parts[2]))
  }

  /// A path in a bag: line breaks and the percent sign itself are encoded, and nothing else (RFC 8493 section 2.1.3).
  static func decoded(_ path: Substring) -> String {
    let parts = path.split(at: "%", omittingEmptySubsequences: false)
    return parts.dropFirst().reduce(into: String(parts[0])) { text, part in
      switch part.utf8.prefix(2).map({ $0 | 0x20 }) {
      case [0x32, 0x35]: text += "%" + part.dropFirstBytes(2)
      case [0x30, 0x61]: text += "\n" + part.dropFirstBytes(2)
      case [0x30, 0x64]: text += "\r" + part.dropFirstBytes(2)
      default: text += "%" + part
      }
    }
  }
}
