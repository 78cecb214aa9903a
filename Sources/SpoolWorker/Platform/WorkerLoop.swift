internal import CLinux
internal import Glibc
internal import Spool
internal import Synchronization
internal import Transfer

/// What the process of a loop has around it: where its thread waits when no task can continue, and the network. A test
/// puts a simulated world in its place.
protocol LoopSurroundings: AnyObject {
  /// Returns after `milliseconds`, after ``ring()``, or once one of `descriptors` is readable or a transfer can go on.
  /// - Returns: those of `descriptors` that are readable.
  func wait(milliseconds: Int32, descriptors: [Int32]) -> [Int32]
  /// Moves the transfers on. Tasks that this resumes run when it has returned.
  func advance()
  /// Ends the current wait, or the next one; on any thread.
  func ring()
  /// The one that the loop drives from now on.
  func makeFetcher(_ options: TransferOptions) throws(TransferError) -> any Fetcher
  /// Whether there is a network, to tell a missing one from a dead server.
  func hasAddress() -> Bool
  func hasRoute() -> Bool
  @WorkerLoop func watchNetwork() -> NetworkWatch?
}

/// Waits in libcurl's poll, or in poll(2) as long as there is no transfer to drive.
///
/// `@unchecked Sendable`: ``ring()`` only uses the descriptor. Everything else is used on the loop's thread.
final class LinuxSurroundings: LoopSurroundings, @unchecked Sendable {
  private let wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
  private var engine: TransferEngine?

  func wait(milliseconds: Int32, descriptors: [Int32]) -> [Int32] {
    let descriptors = [wakeDescriptor] + descriptors
    var readable: [Int32]
    if let engine {
      readable = engine.wait(milliseconds: milliseconds, descriptors: descriptors)
    } else {
      var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      _ = poll(&polled, UInt(polled.count), milliseconds)
      readable = polled.filter { $0.revents != 0 }.map(\.fd)
    }
    if readable.first == wakeDescriptor {
      var count: UInt64 = 0
      _ = read(wakeDescriptor, &count, 8)
      readable.removeFirst()
    }
    return readable
  }

  func advance() { engine?.advance() }

  func ring() {
    var one: UInt64 = 1
    // If the counter is full (EAGAIN), the loop wakes up anyway.
    _ = write(wakeDescriptor, &one, 8)
  }

  func makeFetcher(_ options: TransferOptions) throws(TransferError) -> any Fetcher {
    let engine = try TransferEngine(options)
    self.engine = engine
    return engine
  }

  @WorkerLoop func watchNetwork() -> NetworkWatch? { NetworkWatch() }

  /// Whether an interface other than loopback is up and running and has an IPv4 address, or an IPv6 address that is not
  /// link-local.
  func hasAddress() -> Bool {
    var list: UnsafeMutablePointer<ifaddrs>?
    // If this fails, nothing is known, and the failure counts as the server's.
    guard getifaddrs(&list) == 0 else { return true }
    defer { freeifaddrs(list) }
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      let wanted = UInt32(IFF_UP) | UInt32(IFF_RUNNING)
      guard entry.ifa_flags & wanted == wanted, entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0,
        let address = entry.ifa_addr
      else { continue }
      switch Int32(address.pointee.sa_family) {
      case AF_INET: return true
      case AF_INET6:
        let isLinkLocal = UnsafeRawPointer(address).withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
          withUnsafeBytes(of: $0.pointee.sin6_addr) { $0[0] == 0xFE && $0[1] & 0xC0 == 0x80 }
        }
        if !isLinkLocal { return true }
      default: continue
      }
    }
    return false
  }

  /// Whether there is a route beyond the local links for IPv4 or IPv6. An address of one family may be unreachable
  /// because only the other family has a route.
  func hasRoute() -> Bool {
    // Addresses for documentation (RFC 5737, RFC 3849). Connecting a datagram socket looks up a route and sends nothing
    // (connect(2)).
    ["192.0.2.1", "2001:db8::1"].contains { text in
      var hints = addrinfo()
      hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
      hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
      var found: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(text, "9", &hints, &found) == 0, let found else { return false }
      defer { freeaddrinfo(found) }
      let descriptor = socket(found.pointee.ai_family, found.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
      guard descriptor >= 0 else { return false }
      defer { close(descriptor) }
      return connect(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0
    }
  }
}

/// The actor that a worker runs on: one thread, which also drives libcurl. So jobs need no locks.
@globalActor package actor WorkerLoop {
  /// There is one worker in a process, and one loop: ``executor``.
  package static let shared = WorkerLoop()
  /// A test that simulates several processes gives each its own.
  @TaskLocal static var executor = LoopExecutor(LinuxSurroundings())

  package nonisolated var unownedExecutor: UnownedSerialExecutor { Self.executor.asUnownedSerialExecutor() }

  /// Runs `body` on the calling thread, with everything it starts on this actor, until it returns.
  package static func run<Value: Sendable, Problem: Error>(
    _ body: @escaping @WorkerLoop @Sendable () async throws(Problem) -> Value
  ) throws(Problem) -> Value {
    try executor.run { () async -> Result<Value, Problem> in
      do throws(Problem) { return .success(try await body()) } catch { return .failure(error) }
    }.get()
  }

  @discardableResult nonisolated static func start(_ body: @escaping @WorkerLoop @Sendable () async -> Void) -> Task<
    Void, Never
  > { Task(executorPreference: executor) { await body() } }

  @WorkerLoop static func pause(milliseconds: Int64) async { await executor.pause(milliseconds: milliseconds) }

  /// Ends the current ``pause(milliseconds:)``, or the next one at once.
  @WorkerLoop static func wakeUp() { executor.wakeUp() }
}

/// Runs the actor's jobs on one thread and waits in its ``LoopSurroundings`` in between. It is a task executor as well,
/// because a resumed continuation would otherwise return to the loop via one of libdispatch's threads.
///
/// `@unchecked Sendable`: a mutex protects the queue. Everything else is used on the loop's thread only, by ``run(_:)``
/// and by the actor's jobs, which only ``run(_:)`` executes.
final class LoopExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
  private let queue = Mutex((jobs: [UnownedJob](), isWaiting: false))
  private var pausing: (deadline: Int64, continuation: CheckedContinuation<Void, Never>)?
  private var isWokenUp = false

  let surroundings: any LoopSurroundings
  /// Descriptors that become readable when the paused task should continue.
  var watched: [Int32] = []

  init(_ surroundings: any LoopSurroundings) { self.surroundings = surroundings }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isWaiting = queue.withLock { queue in
      queue.jobs.append(job)
      return queue.isWaiting
    }
    if isWaiting { surroundings.ring() }
  }

  func run<Result: Sendable>(_ body: @escaping @WorkerLoop @Sendable () async -> Result) -> Result {
    let outcome = Answer<Result>()
    WorkerLoop.start { outcome.give(await body()) }
    while true {
      let jobs = queue.withLock { queue in
        let jobs = queue.jobs
        queue.jobs = []
        return jobs
      }
      for job in jobs {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
      if let result = outcome.value(within: 0) { return result }
      if jobs.isEmpty { wait() }
    }
  }

  private func wait() {
    let isIdle = queue.withLock { queue in
      queue.isWaiting = queue.jobs.isEmpty
      return queue.isWaiting
    }
    var readable: [Int32] = []
    if isIdle {
      let timeout = pausing.map { isWokenUp ? 0 : max(0, $0.deadline - Self.milliseconds()) } ?? 60_000
      // Only the paused task reads these descriptors. Without one they would stay readable and the wait would spin.
      let descriptors = pausing == nil ? [] : watched
      readable = surroundings.wait(milliseconds: Int32(clamping: timeout), descriptors: descriptors)
      // Before the transfers go on: the tasks that they resume need not wake this thread.
      queue.withLock { $0.isWaiting = false }
      surroundings.advance()
    }
    if let pausing, isWokenUp || pausing.deadline <= Self.milliseconds() || !readable.isEmpty {
      self.pausing = nil
      isWokenUp = false
      pausing.continuation.resume()
    }
  }

  func pause(milliseconds: Int64) async {
    precondition(pausing == nil, "one task pauses at a time")
    if isWokenUp {
      isWokenUp = false
      return
    }
    await withCheckedContinuation { continuation in pausing = (Self.milliseconds() + milliseconds, continuation) }
  }

  func wakeUp() { isWokenUp = true }

  static func milliseconds() -> Int64 { Host.current.milliseconds() }
}

/// Reports when a link, an address or a route appears or disappears (rtnetlink(7)).
@WorkerLoop final class NetworkWatch {
  nonisolated let descriptor: Int32

  /// nil if the kernel provides no rtnetlink socket. Then jobs wait until they are due.
  init?() {
    descriptor = spoolrun_network_events()
    guard descriptor >= 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// Whether anything was reported since the last call. ``LoopSurroundings/hasAddress()`` then tells the state.
  func hasNews() -> Bool {
    withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 8) { buffer in
      var isNew = false
      while true {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        // ENOBUFS: the kernel dropped messages, so there were some.
        if count > 0 || (count < 0 && errno == ENOBUFS) { isNew = true } else { return isNew }
      }
    }
  }
}

package struct StopSignals {
  let descriptor: Int32
  package let arrived: () -> Bool

  package init(_ descriptor: Int32) {
    self.init(descriptor) {
      var info = signalfd_siginfo()
      guard read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0 else { return false }
      Self.lastOne.store(Int32(info.ssi_signo), ordering: .relaxed)
      return true
    }
  }

  /// The signal that has arrived last; 0 for none.
  package static var last: Int32 { lastOne.load(ordering: .relaxed) }
  private static let lastOne = Atomic<Int32>(0)

  init(_ descriptor: Int32, arrived: @escaping () -> Bool) { (self.descriptor, self.arrived) = (descriptor, arrived) }
}
