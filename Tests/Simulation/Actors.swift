import Glibc
import SystemPackage

@testable import Spool

/// What the processes of the simulated world do with the real code of the spool.
struct Play {
  let world: World
  let oracle: Oracle
  let kind: FileSystemKind
  static let location = "/spool"
  /// Few, so that jobs meet.
  let names: [String]
  /// Pauses are so many times shorter: all that a person does in a minute happens within a second.
  let haste: Int
  /// Lines that a dropped job has besides its URL.
  var more: (Int) -> String = { _ in "" }
  /// The list of the pieces that a job names.
  var pieces: (Int) -> PieceList? = { _ in nil }

  init(_ world: World, _ oracle: Oracle, _ kind: FileSystemKind) {
    (self.world, self.oracle, self.kind) = (world, oracle, kind)
    names = Array(["a", "b", "c"].prefix(world.random(1...3)))
    haste = world.pick([1, 30, 1000])
  }

  /// Opens the spool as a new process of this host, and does `body`. Errors are part of the play.
  func start(
    _ name: String, host: Int = 1, _ fates: [Fate] = [], _ body: @escaping (Spool, Process) throws -> Void
  ) {
    world.start(name, on: host, fates) { process, system in
      do {
        let owner = WorkerID(host: "host\(host)", process: Int32(process.number), tag: UInt32(process.number))
        let spool = try Spool(
          Self.location, owner: owner, boot: "boot\(world.boots)-\(host)", system: system, kind: kind)
        try spool.learnClock()
        try body(spool, process)
      } catch {
        if !process.isDead { world.tellOutcome("ended", error) }
      }
    }
  }

  func pause(upTo milliseconds: Int) {
    Host.current.wait(milliseconds: world.random(0...milliseconds) / haste)
  }

  // MARK: droppers

  func drop(_ ids: ClosedRange<Int>, _ fates: [Fate] = []) {
    start("dropper \(ids.lowerBound)", fates) { spool, process in
      for id in ids {
        pause(upTo: 20_000)
        let priority: Priority? = world.isChance(1, in: 4) ? .high : nil
        do {
          if let list = pieces(id) { try PieceLists(spool).keep(list) }
          let place = try Drops(spool).drop(
            Oracle.text(id) + more(id), as: JobName(FileName(world.pick(names)))!, priority)
          if process.isDead { return }
          world.tell("dropped \(id) as \(place.name.display)")
          oracle.acknowledge(id)
        } catch {
          if process.isDead { return }
          world.tell("\(id) could not be dropped")
          oracle.noteFailedDrop(id)
        }
      }
    }
  }

  /// Holds jobs that wait, and drops others by their names.
  func swap(_ ids: ClosedRange<Int>) {
    start("dropper \(ids.lowerBound)") { spool, process in
      for id in ids {
        pause(upTo: 5000)
        let waiting = try spool.list(.new).filter { $0.bytes.first != 0x77 }
        guard !process.isDead, let name = waiting.randomElement(using: &world.generator) else { continue }
        // Somebody may have been faster.
        do { try spool.moveNoReplace(Path(.new, name), Path(.hold, name)) } catch { continue }
        if let list = pieces(id) { try PieceLists(spool).keep(list) }
        if process.isDead { return }
        let place = try Drops(spool).drop(Oracle.text(id) + more(id), as: JobName(name)!)
        if process.isDead { return }
        world.tell("dropped \(id) as \(place.name.display) in the place of another")
        oracle.acknowledge(id)
      }
    }
  }

  /// As `add --from` does.
  func dropTogether(_ ids: ClosedRange<Int>, _ fates: [Fate] = []) {
    start("dropper \(ids.lowerBound)", fates) { spool, process in
      pause(upTo: 20_000)
      let group = try GroupDrop(spool, groupSize: world.random(1...4))
      for id in ids {
        if let list = pieces(id) { try PieceLists(spool).keep(list) }
        try group.drop(Array((Oracle.text(id) + more(id)).utf8), as: JobName(FileName(world.pick(names)))!)
      }
      try group.finish()
      if process.isDead { return }
      world.tell("dropped \(ids) together")
      ids.forEach(oracle.acknowledge)
    }
  }

  /// As by cp(1) or an editor, perhaps another user's: a file in `new/` that is whole only after a while.
  func write(_ id: Int) {
    start("writer \(id)") { spool, process in
      pause(upTo: 20_000)
      if world.isChance(1, in: 2) { process.user = 4711 }
      let bytes = Array(Oracle.text(id).utf8)
      let staysOpen = world.isChance(1, in: 2)
      // What it opens once more by its name must be its own file.
      let path = Path(.new, FileName(staysOpen ? world.pick(names) : "w\(id)"))
      do {
        let file = try spool.system.create(spool.root, path, O_WRONLY | O_EXCL)
        try file.write(Array(bytes[..<4]), at: 0)
        if staysOpen {
          pause(upTo: 30_000)
          if !process.isDead { try file.write(Array(bytes[4...]), at: 4) }
          return
        }
      }
      // Nobody has it open now.
      Host.current.wait(milliseconds: world.random(0...7000))
      if process.isDead { return }
      try spool.system.open(spool.root, path, O_WRONLY).write(Array(bytes[4...]), at: 4)
    }
  }

  // MARK: workers

  func work(_ number: Int, host: Int = 1, passes: Int, _ fates: [Fate] = []) {
    start("worker \(number)", host: host, fates) { spool, process in
      for _ in 0..<passes {
        if process.isDead { return }
        pass(spool, process)
        pause(upTo: 5000)
      }
    }
  }

  private func pass(_ spool: Spool, _ process: Process) {
    for directory in [Directory.cur, .urgent, .new, .partial].shuffled(using: &world.generator) {
      do {
        for name in try spool.list(directory) {
          if process.isDead { return }
          let begun = world.disk.clock
          guard case .claimed(let claim) = try Claims(spool).claim(name, from: directory, now: spool.now()) else {
            continue
          }
          world.tellOutcome("claimed \(name.display.prefix { $0 != ":" }) from \(directory.rawValue)")
          let text = (try? claim.contents()) ?? []
          oracle.hold(text, process, from: directory, since: begun, lease: Leases(spool).length)
          run(claim, text, spool, process)
          if !process.isDead { oracle.letGo(text) }
        }
      } catch {
        if process.isDead { return }
        world.tellOutcome("pass", error)
      }
    }
  }

  private func run(_ claim: Claim, _ text: [UInt8], _ spool: Spool, _ process: Process) {
    do {
      try claim.append(
        .started(spool.now(), attempt: 1, worker: spool.owner, boot: spool.boot, mirror: 1, url: "u"))
      for _ in 0..<world.random(0...3) {
        pause(upTo: 20_000)
        if process.isDead { return }
        let begun = world.disk.clock
        try claim.heartbeat()
        oracle.hold(text, process, since: begun, lease: Leases(spool).length)
      }
      switch world.random(1...4) {
      case 1:
        try claim.append(.interrupted(spool.now(), attempt: 1, mark: .zero, fetched: 0, reason: "r"))
        try claim.park(until: spool.now() + Int64(world.random(0...30)))
      case 2:
        try claim.append(
          .failed(
            FailureRecord(
              time: spool.now(), attempt: 1, failure: Failure(.cut, "r"), trust: .sound, mark: nil, fetched: 0,
              retry: nil)))
        try claim.giveUp()
      default:
        try claim.append(Self.receipt(at: spool.now()))
        try claim.flush.run()
        try claim.finish()
      }
      if !process.isDead { world.tellOutcome("\(claim.job.display) moved on") }
    } catch {
      if !process.isDead { world.tellOutcome("\(claim.job.display) left", error) }
    }
  }

  private static func receipt(at time: Timestamp) -> JournalLine {
    .done(
      time, attempts: 1, output: "o", fetched: 0, milliseconds: 0, existing: false, unproven: nil, directory: nil)
  }

  // MARK: people

  /// A process that does `gesture` so many times. One that fails is not its last.
  func gesticulate(
    _ name: String, _ gestures: Int, _ fates: [Fate] = [], _ gesture: @escaping (Spool) throws -> Void
  ) {
    start(name, fates) { spool, process in
      for _ in 0..<gestures {
        pause(upTo: 10_000)
        if process.isDead { return }
        do { try gesture(spool) } catch { if !process.isDead { world.tellOutcome("in vain", error) } }
      }
    }
  }

  func steer(_ number: Int, gestures: Int, _ fates: [Fate] = []) {
    gesticulate("person \(number)", gestures, fates) { spool in
      try perform(world.pick([Gesture.hold, .release, .retry, .high, .normal, .low]), target(spool), spool)
    }
  }

  private func perform(_ gesture: Gesture, _ name: FileName, _ spool: Spool) throws {
    let outcome = try Steering(spool).perform(gesture, name)
    // Nobody is told.
    if world.isCurrentDead { return }
    if case .notFound = outcome { return }
    if case .moved(_, let place) = outcome, gesture == .hold { oracle.noteHeld(place) }
    world.tellOutcome("\(gesture.rawValue) \(name.display): \(GestureText.text(outcome))")
  }

  /// Holds what workers have just taken.
  func grab(_ number: Int, looks: Int) {
    start("person \(number)") { spool, process in
      for _ in 0..<looks {
        pause(upTo: 2000)
        guard let name = try spool.list(.cur).randomElement(using: &world.generator).flatMap({ ClaimName($0) }) else {
          continue
        }
        if process.isDead { return }
        do { try perform(.hold, name.job.fileName, spool) } catch {
          if !process.isDead { world.tellOutcome("in vain", error) }
        }
      }
    }
  }

  /// Drops jobs by the name in `new/` that a job loses at this moment, by link and unlink.
  func crowd(_ ids: ClosedRange<Int>) {
    start("dropper \(ids.lowerBound)") { spool, process in
      let (thread, new) = (world.thread, Array("new/".utf8))
      var left = world.pick(names)
      world.onLink = { [world] from in
        guard from.starts(with: new), !process.isDead else { return }
        left = String(decoding: from.dropFirst(new.count), as: UTF8.self)
        world.wake(thread)
      }
      for id in ids {
        Host.current.wait(milliseconds: 40_000)
        for _ in 0..<10 where try spool.status(.new, FileName(left)) != nil {
          Host.current.wait(milliseconds: world.random(1...20))
        }
        if process.isDead { return }
        let place = try Drops(spool).drop(Oracle.text(id) + more(id), as: JobName(FileName(left))!)
        if process.isDead { return }
        world.tell("dropped \(id) as \(place.name.display) beside a move")
        oracle.acknowledge(id)
      }
    }
  }

  /// A name that there may be, or that is there.
  private func target(_ spool: Spool) throws -> FileName {
    let known = FileName(world.pick(names + names.map { $0 + "~2" }))
    if world.isChance(1, in: 2) { return known }
    // What has only been begun, and nobody has open, a person knows better than to touch.
    let there = try [Directory.new, .urgent, .cur].flatMap { try spool.list($0) }.filter { $0.bytes.first != 0x77 }
    return there.isEmpty ? known : world.pick(there.map { ClaimName($0)?.job.fileName ?? $0 })
  }

  /// With mv(1), which is told not to replace anything.
  func move(_ number: Int, gestures: Int) {
    gesticulate("mover \(number)", gestures) { spool in
      let (source, target) = world.pick([
        (Directory.new, Directory.hold), (.cur, .hold), (.partial, .hold), (.hold, .new), (.failed, .new),
        (.new, .urgent), (.partial, .urgent), (.done, .new), (.cur, .new), (.hold, .urgent),
      ])
      guard let name = try spool.list(source).first(where: { _ in world.isChance(1, in: 2) }), !name.isData else {
        return
      }
      let place = JobPlace(directory: source, name: name, inode: 0)
      let isShort = world.isChance(1, in: 2)
      try spool.system.renameNoReplace(spool.root, place.path, Path(target, isShort ? place.job : name))
      world.tell("mv \(source.rawValue)/\(place.job.display) \(target.rawValue)\(isShort ? "" : " with its owner")")
    }
  }

  /// As `url` does.
  func edit(_ number: Int, gestures: Int, _ fates: [Fate] = []) {
    gesticulate("editor \(number)", gestures, fates) { spool in
      let name = try target(spool)
      guard let place = try JobSearch(spool).places(of: name).first(where: { $0.directory != .done }) else { return }
      let stays = place.directory == .hold || place.directory == .urgent
      let home = stays ? place.directory : try Steering(spool).home(of: place)
      let target = try JobEditor(spool).edit(place, to: home) { (old) throws(SpoolError) in
        // Such a job is all but done.
        let isDone = old.withUnsafeBytes { JobText($0) }.journal.publication.receipt != nil
        if isDone { throw SpoolError(call: .rename, path: name.display, errno: .alreadyInProcess) }
        return Array("# edited\n".utf8) + old
      }
      world.tellOutcome("edited \(name.display): \(place.directory.rawValue) to \(target.directory.rawValue)")
    }
  }

  func cancel(_ number: Int, gestures: Int) {
    oracle.cancellers.insert("canceller \(number)")
    gesticulate("canceller \(number)", gestures) { spool in
      _ = try Steering(spool).perform(.cancel, FileName(world.pick(names)))
    }
  }

  // MARK: the end

  /// One worker that nothing disturbs brings all jobs to their ends.
  func settle() {
    start("settler", host: 1) { spool, process in
      for _ in 0..<30 {
        Host.current.wait(milliseconds: 200_000)
        for (name, directory) in try Steering(spool).jobs(for: .release, in: [.hold]) {
          _ = try Steering(spool).perform(.release, name, in: directory)
        }
        for directory in [Directory.cur, .urgent, .new, .partial] {
          for name in try spool.list(directory) {
            guard
              case .claimed(let claim) = try Claims(spool).claim(
                name, from: directory, now: spool.now(), knownDue: .max)
            else { continue }
            try claim.append(Self.receipt(at: spool.now()))
            try claim.finish()
          }
        }
        let left = try [Directory.cur, .urgent, .new, .partial, .hold].flatMap { try spool.list($0) }
        if left.isEmpty { return }
      }
    }
  }
}

private enum GestureText {
  static func text(_ outcome: GestureOutcome) -> String {
    switch outcome {
    case .moved(let from, let to): "\(from.directory.rawValue) to \(to.directory.rawValue)"
    case .due: "due"
    case .removed: "removed"
    case .unchanged: "unchanged"
    case .ambiguous: "ambiguous"
    case .taken: "taken"
    case .directory: "directory"
    case .notFound: "not found"
    case .restless: "restless"
    }
  }
}
