import Glibc
import TestSupport
import Testing

@testable import Spool

/// The simulated disk is worth something as far as it answers as a real one does.
@Suite struct LikenessTests {
  private static let names = ["a", "b", "d/a", "d/b", "d", "l", "none/a"]

  /// One kernel, a directory on its disk, and what is open in it.
  private final class Side {
    let kernel: Kernel
    let directory: Int32
    var files: [Int32] = []

    init(_ kernel: Kernel, _ path: String) {
      self.kernel = kernel
      directory = path.withCString { kernel.open(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY, 0) }
    }

    func closeAll() { for file in files + [directory] { _ = kernel.close(file) } }
  }

  /// What it inherits would reach this machine.
  @Test(arguments: [
    ("Sources/Spool/System/Kernel.swift", "class Kernel:", "SimulatedKernel.swift", "class SimulatedKernel:"),
    ("Sources/Spool/System/Host.swift", "class Host:", "World.swift", "class SimulatedHost:"),
  ])
  func `a simulated process overrides every call`(
    file: String, type: String, simulation: String, simulated: String
  ) throws {
    func members(_ file: String, _ type: String, _ start: Regex<(Substring, Substring)>) throws -> [String] {
      let lines = try SourceTree.lines(file).drop { !$0.contains(type) }.prefix { $0 != "}" }
      return lines.compactMap { $0.prefixMatch(of: start).map { String($0.1) } }.sorted()
    }
    let all = try members(file, type, /\ \ (?:package\ )?(?:func|var)\ (\w+)/)
    #expect(all.count > 5)
    #expect(try members("Tests/Simulation/\(simulation)", simulated, /\ \ override\ (?:func|var)\ (\w+)/) == all)
  }

  /// What a call answers, for a comparison.
  private func answer(_ result: some BinaryInteger, _ more: @autoclosure () -> String = "") -> String {
    result < 0 ? "error \(errno)" : "\(result) \(more())"
  }

  private func text(_ status: stat) -> String {
    let type = String(status.st_mode & S_IFMT, radix: 8)
    return status.st_mode & S_IFMT == S_IFDIR ? type : "\(type) \(status.st_size) \(status.st_nlink)"
  }

  private struct Step {
    let what: Int
    let one: String
    let other: String
    let file: Int
    let number: Int
  }

  private func take(_ step: Step, _ side: Side) -> String {
    let (kernel, at) = (side.kernel, side.directory)
    let flags = [
      O_RDONLY, O_RDWR, O_WRONLY | O_CREAT, O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_CREAT | O_TRUNC,
      O_RDONLY | O_DIRECTORY,
    ]
    return step.one.withCString { one in
      step.other.withCString { other in
        switch step.what {
        case 0...3:
          let file = kernel.open(at, one, flags[step.number % flags.count] | O_NOFOLLOW | O_NONBLOCK, 0o600)
          if file >= 0 { side.files.append(file) }
          return answer(min(file, 0))
        case 4: return answer(kernel.rename(at, one, other, .replacing))
        case 5: return answer(kernel.rename(at, one, other, .withoutReplacing))
        case 6: return answer(kernel.rename(at, one, other, .exchanging))
        case 7: return answer(kernel.link(at, one, at, other, follow: false))
        case 8: return answer(kernel.unlink(at, one))
        case 9: return answer(kernel.makeDirectory(at, one, 0o700))
        case 10: return answer(kernel.symbolicLink("somewhere", at, one))
        case 11:
          var status = stat()
          return answer(kernel.status(at, one, &status, ofServer: false), text(status))
        default: return side.files.isEmpty ? "" : take(step, on: side.files[step.file % side.files.count], side)
        }
      }
    }
  }

  private func take(_ step: Step, on file: Int32, _ side: Side) -> String {
    let kernel = side.kernel
    switch step.what {
    case 12, 13:
      let bytes = [UInt8](repeating: UInt8(step.number), count: step.number % 9 + 1)
      return answer(bytes.withUnsafeBytes { kernel.write(file, $0, at: Int64(step.number % 20)) })
    case 14:
      var bytes = [UInt8](repeating: 0, count: 16)
      return answer(bytes.withUnsafeMutableBytes { kernel.read(file, $0, at: Int64(step.number % 20)) }, "\(bytes)")
    case 15: return answer(kernel.truncate(file, Int64(step.number % 20)))
    case 16:
      var status = stat()
      return answer(kernel.status(file, &status), text(status))
    case 17, 18: return answer(kernel.lock(file, [LOCK_EX, LOCK_SH, LOCK_UN][step.number % 3] | LOCK_NB))
    case 19: return answer(kernel.probeLease(file))
    case 20: return answer(kernel.sync(file, .file))
    case 21: return answer(kernel.setTimes(file, 1_700_000_000, 5))
    default:
      side.files.removeAll { $0 == file }
      return answer(kernel.close(file))
    }
  }

  /// The names in a directory, and what they lead to.
  private func listing(_ side: Side, _ path: String) throws -> [String] {
    let system = System(kernel: side.kernel)
    let stream = DirectoryStream(try system.open(side.directory, Path(path), O_RDONLY | O_DIRECTORY))
    var names: [String] = []
    while let name = try stream.next() { names.append(name.display) }
    return try names.sorted().map { name in
      var status = stat()
      _ = "\(path)/\(name)".withCString { side.kernel.status(side.directory, $0, &status, ofServer: false) }
      guard status.st_mode & S_IFMT == S_IFREG else { return "\(name): \(text(status))" }
      let bytes = try system.open(side.directory, Path("\(path)/\(name)"), O_RDONLY).read(limit: 1000)
      return "\(name): \(text(status)) \(bytes)"
    }
  }

  /// What two disks answer differently when they get the same calls; nil for nothing.
  private func difference(_ seed: UInt64) throws -> String? {
    let directory = try TemporaryDirectory()
    let world = World(seed: seed)
    let simulated = SimulatedKernel(world, Process(1, "likeness"))
    _ = "/here".withCString { simulated.makeDirectory(AT_FDCWD, $0, 0o700) }
    let sides = [Side(Kernel.shared, directory.path), Side(simulated, "/here")]
    defer { for side in sides { side.closeAll() } }
    var calls: [String] = []
    for _ in 0..<80 {
      let step = Step(
        what: world.random(0...22), one: world.pick(Self.names), other: world.pick(Self.names),
        file: world.random(0...99), number: world.random(0...99))
      let answers = sides.map { take(step, $0) }
      calls.append("\(step): \(answers)")
      if answers[0] != answers[1] { return calls.suffix(12).joined(separator: "\n") }
    }
    let listings = try sides.map { try listing($0, ".") }
    return listings[0] == listings[1] ? nil : "\(listings)"
  }

  @Test func `random calls have the same answers on a real disk`() throws {
    for seed in UInt64(1)...150 {
      // A child of another test has this process's open files between its fork and its exec.
      var difference: String?
      for _ in 1...5 {
        difference = try self.difference(seed)
        if difference == nil { break }
        usleep(50_000)
      }
      #expect(difference == nil, "seed \(seed)")
      if difference != nil { return }
    }
  }
}
