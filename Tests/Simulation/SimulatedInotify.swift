import Glibc

@testable import Spool

/// The inotify(7) instances of the simulated world. They hear only what their own host does.
final class SimulatedInotify {
  private final class Instance {
    let process: Process
    var watches: [(directory: SimulatedDisk.Inode, mask: UInt32)] = []
    var events: [(watch: Int32, mask: UInt32, name: [UInt8])] = []

    init(_ process: Process) { self.process = process }
  }

  private unowned let world: World
  private var instances: [Int32: Instance] = [:]
  private var lastNumber: Int32 = 20_000
  /// What limits of the kernel there are.
  private let hasInstances: Bool
  private let mostWatches: Int
  private let mostEvents: Int

  init(_ world: World) {
    self.world = world
    hasInstances = !world.isChance(1, in: 6)
    mostWatches = world.pick([3, 100, 100, 100])
    mostEvents = world.pick([2, 20, 16_384])
  }

  func open(_ process: Process) -> Int32? {
    guard hasInstances else { return nil }
    lastNumber += 1
    instances[lastNumber] = Instance(process)
    return lastNumber
  }

  /// - Returns: whether it was one.
  func close(_ number: Int32) -> Bool { instances.removeValue(forKey: number) != nil }

  func closeAll(of process: Process) { instances = instances.filter { $0.value.process !== process } }

  func addWatch(_ number: Int32, _ directory: SimulatedDisk.Inode, _ mask: UInt32) throws(SimulatedDisk.Failure)
    -> Int32
  {
    guard let instance = instances[number] else { throw SimulatedDisk.Failure(errno: EBADF) }
    if let known = instance.watches.firstIndex(where: { $0.directory === directory }) {
      instance.watches[known].mask = mask
      return Int32(known + 1)
    }
    if instance.watches.count >= mostWatches { throw SimulatedDisk.Failure(errno: ENOSPC) }
    instance.watches.append((directory, mask))
    return Int32(instance.watches.count)
  }

  func hasEvents(_ number: Int32) -> Bool { instances[number]?.events.isEmpty == false }

  /// - Returns: nil if it is none.
  func read(_ number: Int32, _ buffer: UnsafeMutableRawBufferPointer) throws(SimulatedDisk.Failure) -> Int? {
    guard let instance = instances[number] else { return nil }
    if instance.events.isEmpty { throw SimulatedDisk.Failure(errno: EAGAIN) }
    var filled = 0
    while let event = instance.events.first {
      let length = event.name.isEmpty ? 0 : (event.name.count + 16) / 16 * 16
      let size = MemoryLayout<inotify_event>.size + length
      if filled + size > buffer.count { break }
      instance.events.removeFirst()
      let record = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + size])
      record.initializeMemory(as: UInt8.self, repeating: 0)
      record.storeBytes(of: event.watch, as: Int32.self)
      record.storeBytes(of: event.mask, toByteOffset: 4, as: UInt32.self)
      record.storeBytes(of: UInt32(length), toByteOffset: 12, as: UInt32.self)
      UnsafeMutableRawBufferPointer(rebasing: record[16...]).copyBytes(from: event.name)
      filled += size
    }
    return filled
  }

  /// The current process has done something in a directory.
  func tell(_ directory: SimulatedDisk.Inode, _ mask: Int32, _ name: [UInt8]) {
    let host = world.thread?.process.host ?? 1
    for instance in instances.values where instance.process.host == host && !instance.process.isDead {
      guard let index = instance.watches.firstIndex(where: { $0.directory === directory }) else { continue }
      let mask = UInt32(bitPattern: mask)
      guard instance.watches[index].mask & mask & 0xFFF != 0 else { continue }
      if instance.events.count >= mostEvents {
        if instance.events.last?.watch != -1 { instance.events.append((-1, UInt32(IN_Q_OVERFLOW), [])) }
      } else {
        instance.events.append((Int32(index + 1), mask, name))
      }
      world.wake(instance.process.listener)
    }
  }
}
