internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolLists
internal import SystemPackage

/// `spoolrun-entries [--entries FORMAT] [--name NAME] [FILE [OUTPUT]]`: reads a list that a standing order watches, and
/// prints its entries as a native list. NAME is the list's own, which may say what its digests are. It is a program of
/// its own because the list is a stranger's: what happens to it stays in a process without the worker's memory, limited
/// in memory and time.
@main enum EntriesCommand {
  /// Bytes beyond those of its start.
  private static let memory: UInt64 = 256 << 20
  /// Seconds of CPU.
  private static let time: UInt32 = 30
  /// Bytes that are written at a time.
  private static let blockSize = 256 << 10

  static func main() {
    let arguments = CommandLine.arguments.dropFirst().map { Array($0.utf8) }
    exit(run(arguments))
  }

  private static let usage = "usage: spoolrun-entries [--entries FORMAT] [--name NAME] [FILE [OUTPUT]]"

  /// - Returns: the exit status, of sysexits(3).
  private static func run(_ arguments: [[UInt8]]) -> Int32 {
    var files = arguments
    var format: EntryFormat?
    if arguments.first == Array("--entries".utf8), arguments.count > 1 {
      format = EntryFormat(rawValue: String(decoding: arguments[1], as: UTF8.self))
      if format == nil { return fail(64, "--entries: \(escaped(arguments[1])) is no format; \(usage)") }
      files.removeFirst(2)
    }
    var name: [UInt8] = []
    if files.first == Array("--name".utf8), files.count > 1 {
      name = files[1]
      files.removeFirst(2)
    }
    if files.count > 2 || files.contains(where: { $0.first == 0x2D }) { return fail(64, usage) }
    // It would kill the program before it can say why.
    signal(SIGXFSZ, SIG_IGN)
    do {
      let list = try EntryList(files.first)
      let target = files.count == 2 ? open(files[1]) : 1
      if target < 0 { return fail(74, "\(escaped(files[1])): \(Errno(rawValue: errno))") }
      // It loads a library, and no file can be opened later.
      _ = DigestAlgorithm.blake2b.isAvailable
      guard spoolrun_confine(memory, time, UInt64(EntryList.longestOutput)) == 0 else {
        return fail(71, "setrlimit: \(Errno(rawValue: errno))")
      }
      try write(list.entries(format, name: name), to: target)
      return 0
    } catch {
      let (status, reason) = EntryList.failure(error)
      return fail(status, reason)
    }
  }

  private static func open(_ path: [UInt8]) -> Int32 {
    Glibc.open(path.map { CChar(bitPattern: $0) } + [0], O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
  }

  /// In blocks, because the text of all entries takes as much memory as the entries do.
  private static func write(_ list: ReadList, to target: Int32) throws(SpoolError) {
    var block: [UInt8] = []
    var problems = list.problems
    for (index, entry) in list.entries.enumerated() {
      if let text = entry.text {
        block += text.utf8
      } else {
        problems.note("entry \(index + 1): its URL is empty, too long, or has control characters")
      }
      if block.count < blockSize { continue }
      try write(block, to: target)
      block.removeAll(keepingCapacity: true)
    }
    block += list.end(problems).utf8
    try write(block, to: target)
  }

  private static func write(_ bytes: [UInt8], to target: Int32) throws(SpoolError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(target, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count <= 0 { throw SpoolError(call: .write, path: "the entries", errno: Errno(rawValue: errno)) }
      rest = rest.dropFirst(count)
    }
  }

  private static func fail(_ status: Int32, _ message: String) -> Int32 {
    try? write(Array("\(message)\n".utf8), to: 2)
    return status
  }
}
