import Glibc
import SystemPackage
import TestSupport

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// Whole workers of the simulated world: the scheduler, transfers, recovery and commits, with simulated servers.
struct WholeWorkers {
  let play: Play
  let servers: SimulatedServers
  /// The options of all workers that the seed draws once.
  private let chunkSize: UInt64
  private let checkpointBytes: UInt64
  private let connections: Int
  private var world: World { play.world }
  private var oracle: Oracle { play.oracle }
  private var files: SimulatedDisk.Inode? { spool.entries[Array("files".utf8)]?.inode }
  private let spool: SimulatedDisk.Inode
  /// nil where there are no hooks and gates.
  let programs: SimulatedPrograms?
  /// Changes the options of a worker.
  var tune: (inout WorkerOptions) -> Void = { _ in }

  init(_ play: Play, spool: SimulatedDisk.Inode, hasPrograms: Bool = false) {
    self.play = play
    self.spool = spool
    servers = SimulatedServers(play.world)
    chunkSize = UInt64(play.world.pick([1000, 16_384, 100_000]))
    checkpointBytes = UInt64(play.world.pick([1000, 20_000, 1 << 20]))
    connections = play.world.pick([1, 1, 2, 4])
    programs = hasPrograms ? SimulatedPrograms(play, servers, spool: spool) : nil
    oracle.onChange = { [self] in look($0) }
  }

  /// Lines of a job besides its URL.
  func more(_ id: Int) -> String {
    var lines = world.isChance(1, in: 3) ? "connections: \(world.random(1...4))\n" : ""
    if let digest = servers.declaredDigest(id) { lines += "crc32: \(digest)\n" }
    if let pieces = servers.declaredPieces(id) { lines += "pieces: \(pieces.key.text)\n" }
    if servers.hasMirror(id) { lines += "url: http://mirror/\(1_000_000 + id)\n" }
    lines += programs?.line(of: id) ?? ""
    return lines
  }

  // MARK: workers

  /// - Parameters:
  ///   - stays: whether it watches until it is told to stop after so many milliseconds; nil for `--once`.
  ///   - isOver: whether it is told to stop now; asked every minute.
  func work(
    _ number: Int, host: Int = 1, stays: Int? = nil, until isOver: (() -> Bool)? = nil, _ fates: [Fate] = []
  ) {
    let name = "worker \(number)"
    play.start(name, host: host, fates) { spool, process in
      if let stays {
        world.startThread(process) {
          var left = stays
          while let isOver, left > 60_000, !process.isDead, !isOver() {
            Host.current.wait(milliseconds: 60_000)
            left -= 60_000
          }
          if isOver?() != true { Host.current.wait(milliseconds: left) }
          process.tellToStop()
        }
      } else {
        play.pause(upTo: 20_000)
      }
      process.listener = world.thread
      let executor = LoopExecutor(SimulatedSurroundings(world, process, servers))
      let options = options()
      let world = world
      let end = WorkerLoop.$executor.withValue(executor) {
        WorkerLoop.run { () async -> String in
          do {
            let worker = try Worker(spool, options) { event in
              if event.name == "checkpoint" { world.note(.checkpoint) }
              if event.name == "checked" { world.note(.checked) }
              if event.fields.text.contains(SimulatedPrograms.secret) { world.blame("\(event.name) tells a secret") }
              if !process.isDead { world.note("\(event.name) \(event.job?.display ?? "") \(event.fields.text)") }
            }
            worker.signals = StopSignals(SimulatedSurroundings.stopSignals) { process.isDead || process.isTold }
            let summary =
              if stays != nil { try await worker.watch(stopSignals: -1) } else { await worker.runOnce() }
            return "\(summary.done) done, \(summary.waiting) wait, \(summary.givenUp) given up"
              + (summary.spoolError.map { "; \($0.call) \($0.errno)" } ?? "")
          } catch {
            world.note("\(error)")
            return "failed"
          }
        }
      }
      if !process.isDead { world.tell("ended: \(end)") }
    }
  }

  private func options() -> WorkerOptions {
    var options = WorkerOptions()
    options.jobs = world.random(1...4)
    (options.perHost, options.perHostGrows) = (servers.perHost, false)
    (options.connections, options.connectionsIfSlow) = (connections, 4)
    options.maxMemory = 8 << 20
    (options.chunkSize, options.checkpointBytes) = (chunkSize, checkpointBytes)
    options.entriesProgram = programs == nil ? nil : SimulatedPrograms.entries
    if programs?.hasGate == true { options.gate = Gate("gate") }
    tune(&options)
    return options
  }

  // MARK: people

  /// A person removes a job's data and puts another file there, as from a backup.
  func restore(_ number: Int, gestures: Int) {
    play.gesticulate("restorer \(number)", gestures) { spool in
      let isBegun = try spool.list(.partial).filter { $0.isData }
      guard !isBegun.isEmpty else { return }
      let path = Path(.partial, world.pick(isBegun))
      guard var bytes = try spool.readableContents(path), !bytes.isEmpty else { return }
      bytes[world.random(0...bytes.count - 1)] ^= 1
      try spool.system.unlink(spool.root, path)
      try spool.system.create(spool.root, path, O_WRONLY | O_EXCL).write(bytes, at: 0)
      world.tell("restored \(path.display)")
    }
  }

  /// A published payload is damaged, and a person has it fetched again, as `verify --refetch` does.
  func refetch(_ number: Int, gestures: Int) {
    play.gesticulate("refetcher \(number)", gestures) { spool in
      guard let name = try spool.list(.done).randomElement(using: &world.generator),
        let bytes = try spool.contents(Path(.done, name), limit: Spool.maximumJobFile),
        let id = Oracle.id(in: bytes), programs?.hasTaken(id) != true, servers.resource(id).versions.count == 1,
        let file = files?.entries[payload(id)]?.inode, !file.bytes.isEmpty,
        // Nobody has taken the receipt away to have it looked at again.
        self.spool.entries[Array("done".utf8)]?.inode.entries[Array(name.bytes)] != nil
      else { return }
      file.bytes[world.random(0...file.bytes.count - 1)] ^= 1
      file.durableBytes = file.bytes
      servers.rotten.insert(id)
      world.tell("damaged the payload of \(id)")
      try refetch(name, bytes, spool)
    }
  }

  private func refetch(_ name: FileName, _ receipt: [UInt8], _ spool: Spool) throws {
    guard let verified = receipt.withUnsafeBytes({ JobText($0) }).journal.publication.verified else { return }
    let id = Oracle.id(in: receipt) ?? 0
    servers.refused.insert(id)
    try Steering(spool).refetch(Path(.done, name), name, verified)
    servers.refused.remove(id)
    world.tell("\(name.display) is to be fetched again")
  }

  // MARK: what must be true

  private func payload(_ id: Int) -> [UInt8] { Array("\(1_000_000 + id)".utf8) }

  private func look(_ changes: [SimulatedDisk.Change]) {
    programs?.look(changes)
    oracle.checkOwner(changes)
    for change in changes {
      guard let inode = change.inode, inode.type == S_IFREG else { continue }
      if change.directory === files, let number = Int(String(decoding: change.name, as: UTF8.self)) {
        check(number - 1_000_000, inode, "is published")
        servers.rotten.remove(number - 1_000_000)
      }
      if change.directory === spool.entries[Array("done".utf8)]?.inode, let id = Oracle.id(in: inode.bytes),
        world.currentName.hasPrefix("worker")
      {
        checkDone(id, inode)
      }
    }
  }

  /// What is in `done/` is durable, with its payload.
  private func checkDone(_ id: Int, _ receipt: SimulatedDisk.Inode) {
    guard let files, programs?.hasTaken(id) != true else { return }
    if files.entries[payload(id)] == nil { oracle.blame(id, "is done without a payload") }
    if !world.disk.isDurable(payload(id), in: files) { oracle.blame(id, "is done, and its payload is not durable") }
    func publication(_ bytes: [UInt8]) -> Journal.Publication {
      bytes.withUnsafeBytes { JobText($0) }.journal.publication
    }
    let said = publication(receipt.bytes)
    let stated = said.verified?.digests[.crc32]
    if !servers.refused.contains(id), let stated, let bytes = files.entries[payload(id)]?.inode.bytes {
      var checksum = Checksum()
      bytes.withUnsafeBytes { checksum.update($0) }
      if "\(checksum)" != "\(stated)" { oracle.blame(id, "is done with \(checksum), not \(stated)") }
    }
    // A line behind the receipt, of a move to done/ that failed, may be lost: another process's fsync told of it.
    if receipt.durableBytes != receipt.bytes, said.done == nil || said.done != publication(receipt.durableBytes).done {
      oracle.blame(id, "is done, and its receipt is not durable")
    }
  }

  private func check(_ id: Int, _ inode: SimulatedDisk.Inode, _ what: String) {
    if servers.version(id, is: inode.bytes) != nil { return }
    let resource = servers.resource(id)
    let differences = resource.versions.map { version in
      let right = SimulatedServers.bytes(resource, version, 0..<version.size)
      let first = zip(right, inode.bytes).enumerated().first { $0.element.0 != $0.element.1 }?.offset
      return "version \(version.number) of \(version.size) bytes: \(first.map { "differs at \($0)" } ?? "a prefix")"
    }
    oracle.blame(id, "\(what) with \(inode.bytes.count) wrong bytes, \(resource.validator): \(differences)")
  }

  func powerWasCut() {
    for (id, found) in oracle.places() where found.contains(where: { $0.place.hasPrefix("done/") }) {
      checkPayload(id, "is done after a power cut")
    }
  }

  private func checkPayload(_ id: Int, _ what: String) {
    if programs?.hasTaken(id) == true { return }
    guard let entry = files?.entries[payload(id)] else { return oracle.blame(id, "\(what), without its payload") }
    if servers.rotten.contains(id) { return }
    check(id, entry.inode, what)
  }

  // MARK: the end

  /// When faults end, every job comes to its end.
  func settle() {
    servers.areFaulty = false
    programs?.areFaulty = false
    world.disk.room = 1 << 40
    let last = 31
    for round in 1...last {
      // What failed stays so at the end; a job without a last newline has to settle once more.
      if round < last { release() }
      work(1000 + round)
      world.run()
      if isSettled { break }
      world.disk.clock += Int64(world.pick([100, 3000, 90_000])) * 1_000_000_000
    }
    for (id, found) in oracle.places() where found.contains(where: { $0.place.hasPrefix("done/") }) {
      checkPayload(id, "is done")
    }
    for (id, requests) in servers.soundRequests.sorted(by: { $0.key < $1.key })
    where requests > 40 + servers.resource(id).versions.map(\.size).max()! / 500 {
      oracle.blame(id, "took \(requests) requests of a sound server")
    }
  }

  /// Gives every job that is paused, has failed or lost its payload another try.
  private func release() {
    play.start("releaser") { spool, _ in
      for (name, directory) in try Steering(spool).jobs(for: .release, in: [.hold]) {
        _ = try Steering(spool).perform(.release, name, in: directory)
      }
      for (name, directory) in try Steering(spool).jobs(for: .retry, in: [.failed]) {
        _ = try Steering(spool).perform(.retry, name, in: directory)
      }
      for name in try spool.list(.done) {
        let receipt = try spool.contents(Path(.done, name), limit: Spool.maximumJobFile) ?? []
        if let id = Oracle.id(in: receipt), servers.rotten.contains(id) { try refetch(name, receipt, spool) }
      }
    }
    world.run()
  }

  private var isSettled: Bool {
    servers.rotten.isEmpty && oracle.places().values.allSatisfy { $0.allSatisfy { $0.place.hasPrefix("done/") } }
  }
}
