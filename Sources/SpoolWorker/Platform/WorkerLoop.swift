internal import CLinux
internal import Glibc
internal import Synchronization

/// What the loop's thread waits in when no task can continue: libcurl's poll, or poll(2).
protocol LoopDriver: AnyObject {
  /// Returns after `milliseconds`, or once one of `descriptors` is readable or a transfer can go on.
  /// - Returns: those of `descriptors` that are readable.
  func wait(milliseconds: Int32, descriptors: [Int32]) -> [Int32]
  /// Moves the transfers on. Tasks that this resumes run when it has returned.
  func advance()
}

/// The actor that a worker runs on: one thread, which also drives libcurl. So jobs need no locks.
@globalActor
package actor WorkerLoop {
  /// There is one worker in a process, and one loop.
  package static let shared = WorkerLoop()
  static let executor = LoopExecutor()

  package nonisolated var unownedExecutor: UnownedSerialExecutor { Self.executor.asUnownedSerialExecutor() }

  /// Runs `body` on the calling thread, with everything it starts on this actor, until it returns.
  package static func run<Result: Sendable>(_ body: @escaping @WorkerLoop @Sendable () async -> Result) -> Result {
    executor.run(body)
  }

  /// Starts a task on the loop.
  @discardableResult
  nonisolated static func start(_ body: @escaping @WorkerLoop @Sendable () async -> Void) -> Task<Void, Never> {
    Task(executorPreference: executor) { await body() }
  }

  /// Waits for ``wakeUp()``, at most `milliseconds`.
  @WorkerLoop static func pause(milliseconds: Int64) async { await executor.pause(milliseconds: milliseconds) }

  /// Ends the current ``pause(milliseconds:)``, or the next one at once.
  @WorkerLoop static func wakeUp() { executor.wakeUp() }
}

/// Runs the actor's jobs on one thread and waits with a ``LoopDriver`` in between. It is a task executor as well,
/// because a resumed continuation would otherwise return to the loop via one of libdispatch's threads.
///
/// `@unchecked Sendable`: a mutex protects the queue. Everything else is used on the loop's thread only, by ``run(_:)``
/// and by the actor's jobs, which only ``run(_:)`` executes.
final class LoopExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
  private struct Queue {
    var jobs: [UnownedJob] = []
    var isWaiting = false
  }

  private let queue = Mutex(Queue())
  private let wakeDescriptor = spoolrun_eventfd()
  private var pausing: (deadline: Int64, continuation: CheckedContinuation<Void, Never>)?
  private var isWokenUp = false

  /// Set by the worker; nil while there is no transfer to drive.
  var driver: (any LoopDriver)?
  /// Descriptors that become readable when the paused task should continue.
  var watched: [Int32] = []

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isWaiting = queue.withLock { queue in
      queue.jobs.append(job)
      return queue.isWaiting
    }
    if isWaiting { ring() }
  }

  private func ring() {
    var one: UInt64 = 1
    // If the counter is full (EAGAIN), the loop wakes up anyway.
    _ = write(wakeDescriptor, &one, 8)
  }

  func run<Result: Sendable>(_ body: @escaping @WorkerLoop @Sendable () async -> Result) -> Result {
    let outcome = Outcome<Result>()
    WorkerLoop.start {
      let result = await body()
      outcome.value.withLock { $0 = result }
    }
    while true {
      let jobs = queue.withLock { queue in
        let jobs = queue.jobs
        queue.jobs = []
        return jobs
      }
      for job in jobs {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
      if let result = outcome.value.withLock({ $0 }) { return result }
      if jobs.isEmpty { wait() }
    }
  }

  private final class Outcome<Value: Sendable>: Sendable { let value = Mutex<Value?>(nil) }

  private func wait() {
    let isIdle = queue.withLock { queue in
      queue.isWaiting = queue.jobs.isEmpty
      return queue.isWaiting
    }
    var readable: [Int32] = []
    if isIdle {
      let timeout = pausing.map { isWokenUp ? 0 : max(0, $0.deadline - Self.milliseconds()) } ?? 60_000
      // Only the paused task reads these descriptors. Without one they would stay readable and the wait would spin.
      let descriptors = pausing == nil ? [wakeDescriptor] : [wakeDescriptor] + watched
      if let driver {
        readable = driver.wait(milliseconds: Int32(clamping: timeout), descriptors: descriptors)
      } else {
        var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        _ = poll(&polled, UInt(polled.count), Int32(clamping: timeout))
        readable = polled.filter { $0.revents != 0 }.map(\.fd)
      }
      // Before the transfers go on: the tasks that they resume need not wake this thread.
      queue.withLock { $0.isWaiting = false }
      var count: UInt64 = 0
      if readable.contains(wakeDescriptor) { _ = read(wakeDescriptor, &count, 8) }
      driver?.advance()
    }
    let isWatchedReadable = readable.contains { $0 != wakeDescriptor }
    if let pausing, isWokenUp || pausing.deadline <= Self.milliseconds() || isWatchedReadable {
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
    await withCheckedContinuation { continuation in
      pausing = (Self.milliseconds() + milliseconds, continuation)
    }
  }

  func wakeUp() { isWokenUp = true }

  /// CLOCK_BOOTTIME: continues while the machine sleeps, and never jumps.
  static func milliseconds() -> Int64 { clock(CLOCK_BOOTTIME) }

  /// How long the machine has slept since it booted: what CLOCK_MONOTONIC does not count.
  static func asleepMilliseconds() -> Int64 { clock(CLOCK_BOOTTIME) - clock(CLOCK_MONOTONIC) }

  private static func clock(_ id: clockid_t) -> Int64 {
    var clock = timespec()
    clock_gettime(id, &clock)
    return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
  }
}
