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
    guard let digest = try manifest.digest(of: item.path) else {
      throw Defect(line: line.number, reason: "`\(escaped(item.path))` is not in \(manifest.name)")
    }
    try job.request.declare(digest, line: line.number)
    return job
  }

  mutating func finish() -> ListedJob? { nil }
}

/// The manifest of a bag: a digest and a path in each line (RFC 8493 section 2.1.3). Keeps only where each line is,
/// so that a million of them take little memory.
final class BagManifest: Sendable {
  let name: String
  private let algorithm: DigestAlgorithm
  private let descriptor: Int32
  private let offsets: [Fingerprint: Int]

  /// The manifest in `directory` with the strongest digest; nil where there is none.
  /// - Parameter directory: empty, or with a slash at the end.
  /// - Throws: ``Defect``, ``SpoolError``.
  static func beside(_ directory: [UInt8]) throws -> BagManifest? {
    for algorithm in DigestAlgorithm.byStrength where algorithm != .crc32 {
      let name = "manifest-\(algorithm.rawValue).txt"
      let path = directory + Array(name.utf8)
      let descriptor = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC)
      if descriptor >= 0 { return try BagManifest(algorithm, name, path, descriptor) }
      if errno != ENOENT { throw SpoolError(call: .open, path: escaped(path), errno: Errno(rawValue: errno)) }
    }
    return nil
  }

  private init(_ algorithm: DigestAlgorithm, _ name: String, _ path: [UInt8], _ descriptor: Int32) throws {
    (self.name, self.algorithm, self.descriptor) = (name, algorithm, descriptor)
    var offsets: [Fingerprint: Int] = [:]
    var lines = LineReader(ByteSource { try Self.read(descriptor, into: $0, path) })
    do {
      var offset = 0
      while let line = try lines.next()?.get() {
        defer { offset = lines.offset }
        if line.content.isEmpty { continue }
        guard let (_, path) = Self.parse(line.text, algorithm) else {
          throw Defect(line: line.number, reason: "must be the \(algorithm.title) and the path of a file")
        }
        offsets[Fingerprint(Array(path.utf8))] = offset
      }
    } catch let defect as Defect {
      throw Defect(line: nil, reason: "\(name): \(defect)")
    }
    self.offsets = offsets
  }

  deinit { close(descriptor) }

  /// The digest of the file at `path` in the bag; nil where the manifest does not list it.
  func digest(of path: String) throws(Defect) -> Digest? {
    guard let offset = offsets[Fingerprint(Array(path.utf8))] else { return nil }
    let line = [UInt8](unsafeUninitializedCapacity: 4096 + 200) { buffer, count in
      count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset)))
    }.prefix { $0 != 0x0A && $0 != 0x0D }
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

  private static func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, _ path: [UInt8]
  ) throws(SpoolError) -> Int {
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR { throw SpoolError(call: .read, path: escaped(path), errno: Errno(rawValue: errno)) }
    }
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
