/*
 * The spool's protocol: claims, take-over, gestures, recovery and commit, with crashes at every step.
 * An atomic block is a system call of the Swift function that its comment names; computations belong to the call before
 * them. README.md says what is checked, with which bounds, and what is left out. `check` runs it.
 *
 * Configuration, by -D:
 *   JOBS        1, or 2 of one name
 *   SHARED      the two workers are on two hosts, and any process may sleep past its lease; otherwise on one host
 *   NOFLOCK     with SHARED: flock(2) succeeds for everyone on another host
 *   DELIVERS    there is the hook deliver, which may fail so often
 *   FREEZES     a worker may stand still for longer than its lease, for ever or not; its locks stay
 *   LATE        the dropper still writes to the job's file, which no call shows, as on most network file systems
 *   UNORDERED   without SHARED: a power cut keeps or loses each name for itself; otherwise it leaves an earlier state
 *   CRASHES CUTS LAPSES GESTURES FAILURES VERSIONS   how often each may happen
 *   BUG_…       a deliberate mistake, which has to be found
 */

#ifndef JOBS
#define JOBS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef LAPSES
#define LAPSES 0
#endif
#ifndef GESTURES
#define GESTURES 0
#endif
#ifndef FAILURES
#define FAILURES 0
#endif
#ifndef VERSIONS
#define VERSIONS 0
#endif
#ifndef STRANGERS
#define STRANGERS 0
#endif
#ifndef FREEZES
#define FREEZES 0
#endif
#ifndef LATE
#define LATE 0
#endif
#define RENEWS (FREEZES || LATE) /* the job's inode changes when it is taken over; elsewhere it does not matter */
#ifdef SHARED
#define ON_TWO_HOSTS 1
#else
#define ON_TWO_HOSTS 0
#endif
#ifdef NOFLOCK
#define FLOCK_FAILS 1
#else
#define FLOCK_FAILS 0
#endif

#define WORKERS 2
#define OWNERS (WORKERS + CRASHES + 2 * CUTS) /* a worker that comes again has another process id */
#define NAMES 3                              /* x, x~2, x~3 */
#define INODES 6                             /* of data; 0 is none */
#define STRANGER 6                           /* another program's file at the output */
#define NONE 9

/* The directory that a job is in. */
#define TMP 0
#define NEW 1
#define CUR 2
#define PARTIAL 3
#define FAILED 4
#define HOLD 5
#define DONE 6
#define GONE 7

/* Durable copies end in D: what a power cut leaves. */
byte loc[JOBS], nm[JOBS], own[JOBS];
byte locD[JOBS], nmD[JOBS], ownD[JOBS];
byte part[NAMES], partD[NAMES];          /* partial/NAME.part: an inode */
byte out[JOBS], outD[JOBS];              /* the output of each job: an inode */
/* The payload has two blocks; each holds the version of the remote file that it came from. */
#define ZEROS 3
byte cell[14], cellD[14];

/* What Journal.swift folds a job's lines into. */
typedef Journal {
  bit some;         /* not empty */
  byte host, boot;  /* started: */
  byte ver, ino;    /* response: */
  byte mark, soft;  /* checkpoint:, interrupted: */
  byte vino;        /* verified: */
  bit receipt;      /* done: */
#ifdef DELIVERS
  bit waits;        /* published: */
#endif
  byte failed;      /* ends in a failure, 2 for good: the move is still to be made */
}
#if RENEWS
/* After the jobs' own, for each worker: of a file that it has open, which is no job's any more; or of its copy. */
Journal jrn[JOBS + WORKERS], jrnD[JOBS + WORKERS];
bool old[WORKERS];                        /* such a file is open */
#define SPARE(w) (JOBS + (w))
#define FILE(w, j) (old[w] -> SPARE(w) : (j))
#else
Journal jrn[JOBS], jrnD[JOBS];
#define FILE(w, j) (j)
#endif
#define IS_OLD(w) (FILE(w, 0) != 0)
Journal seen[WORKERS];                    /* Claim.text.journal: as it was read */

byte jlock[JOBS], plock[INODES];          /* flock(2): worker + 1, or PERSON */
#define PERSON 4
byte fd[WORKERS], pfd[WORKERS], tfd[WORKERS]; /* the job + 1; the data's inode; a new inode under a name in tmp/ */
byte fdP;                                 /* a person's: the data's inode */
bool stale[WORKERS];                      /* the job file is longer than this worker knows */
byte me[WORKERS];                         /* the owner in the claim's name */
byte ownerHost[OWNERS];
bool expired[OWNERS];                     /* no heartbeat within the lease */
byte owners;
bool killed[WORKERS], killedP;
#if FREEZES
byte frozen[WORKERS];                     /* 2: for ever */
byte freezes = FREEZES;
#define AWAKE(w) (!frozen[w] || killed[w])
#else
#define AWAKE(w) true
#endif
#ifdef DELIVERS
byte refusals = DELIVERS;                 /* of the hook */
bool hooked[JOBS], accepted[JOBS];        /* the hook began; it has accepted the payload */
#endif
#if LATE
bool isWritten = 1;                       /* the dropper can write to the job's file */
#endif
byte boot[3];
byte remote = 1;                          /* the version that the server has */
byte crashes = CRASHES, cuts = CUTS, lapses = LAPSES, gestures = GESTURES, failures = FAILURES, versions = VERSIONS,
  strangers = STRANGERS;

#if defined(SHARED) || defined(UNORDERED) || FREEZES
#define KNOWS_ITS_OWN 0
#else
#define KNOWS_ITS_OWN 1
#endif
#define HOST(w) (ON_TWO_HOSTS -> (w) + 1 : 1)
#if JOBS == 2
#define VERSION(j) ((j) + 1)
#else
#define VERSION(j) remote
#endif

#define IS(j, dir, n, o) (loc[j] == (dir) && nm[j] == (n) && ((dir) != CUR || own[j] == (o)))
#define IN(j, dir, n) (loc[j] == (dir) && nm[j] == (n))
#if JOBS == 2
#define FIND(dir, n, o) (IS(0, dir, n, o) -> 0 : (IS(1, dir, n, o) -> 1 : NONE))
#define ANY(dir, n) (IN(0, dir, n) || IN(1, dir, n))
#define PUBLISHED(i) (out[0] == (i) || out[1] == (i))
#else
#define FIND(dir, n, o) (IS(0, dir, n, o) -> 0 : NONE)
#define ANY(dir, n) IN(0, dir, n)
#define PUBLISHED(i) (out[0] == (i))
#endif
#define LENGTH(i) (cell[2 * (i) + 1] -> 2 : (cell[2 * (i)] -> 1 : 0))
#define WHOLE(i) (cell[2 * (i)] && cell[2 * (i)] != ZEROS && cell[2 * (i)] == cell[2 * (i) + 1])
#define DURABLE(i) (cellD[2 * (i)] == cell[2 * (i)] && cellD[2 * (i) + 1] == cell[2 * (i) + 1])
#define HELD(w, lock) ((lock) && (lock) != (w) + 1 && !(FLOCK_FAILS && (lock) != PERSON))
/* Spool.freeName */
#if JOBS == 2
#define FREE(n) (!(loc[0] != GONE && loc[0] != TMP && nm[0] == (n)) && !(loc[1] != GONE && loc[1] != TMP && nm[1] == (n)) && !part[n])
#else
#define FREE(n) (!(loc[0] != GONE && loc[0] != TMP && nm[0] == (n)) && !part[n])
#endif
#define FREE_NAME (FREE(1) -> 1 : (FREE(2) -> 2 : NONE))
#define OURS(w, j, n) (IS(j, CUR, n, me[w]) && !IS_OLD(w))

#ifdef DELIVERS
#define WAITS(a) a.waits
#define SET_WAITS(a, b) ; a.waits = b
#else
#define WAITS(a) 0
#define SET_WAITS(a, b)
#endif

#define copy(a, b) a.some = b.some; a.host = b.host; a.boot = b.boot; a.ver = b.ver; a.ino = b.ino; a.mark = b.mark; \
  a.soft = b.soft; a.vino = b.vino; a.receipt = b.receipt; a.failed = b.failed SET_WAITS(a, b.waits)

#define forget(a) a.some = 0; a.host = 0; a.boot = 0; a.ver = 0; a.ino = 0; a.mark = 0; a.soft = 0; a.vino = 0; \
  a.receipt = 0; a.failed = 0 SET_WAITS(a, 0)

#define UNUSED(i) (!PUBLISHED(i) && part[0] != i && part[1] != i && part[2] != i && outD[0] != i && outD[JOBS - 1] != i \
  && partD[0] != i && partD[1] != i && partD[2] != i && pfd[0] != i && pfd[1] != i && tfd[0] != i && tfd[1] != i && fdP != i)

/* The lowest free number, as file systems do: one that was another file's before comes soon again. */
inline create(i) {
  i = (UNUSED(1) -> 1 : (UNUSED(2) -> 2 : (UNUSED(3) -> 3 : (UNUSED(4) -> 4 : (UNUSED(5) -> 5 : 0)))));
  assert(i);
  cell[2 * i] = 0; cell[2 * i + 1] = 0; cellD[2 * i] = 0; cellD[2 * i + 1] = 0; plock[i] = 0
}

/* pwrite of one block. Invariant 2: nothing is written to a file with its final name. */
inline put(i, k, v) {
  assert(!PUBLISHED(i));
  cell[2 * (i) + k] = v;
  if
  :: k == 1 && !cell[2 * (i)] -> cell[2 * (i)] = ZEROS
  :: else
  fi
}

inline cut(i, n) {
  assert(!PUBLISHED(i) || LENGTH(i) <= n);
  cell[2 * (i) + 1] = 0;
  if
  :: n == 0 -> cell[2 * (i)] = 0
  :: else
  fi
}

/* The journal of the file that a worker has open. */
#define JOURNAL jrn[FILE(w, j)]
#define DURABLE_JOURNAL jrnD[FILE(w, j)]

/* Claim.append: other workers that have the job open do not know the line. */
#define APPENDED(w, j) stale[1 - (w)] = stale[1 - (w)] || (fd[1 - (w)] == (j) + 1 && !IS_OLD(w) && !IS_OLD(1 - (w))); \
  jrn[FILE(w, j)].some = 1; jrn[FILE(w, j)].failed = 0

#ifdef BUG_APPEND_BLIND
#define STALE(w) false
#else
#define STALE(w) stale[w]
#endif

/* A name changed. On a file system of another machine that is durable at once. */
inline syncNames() {
  locD[0] = loc[0]; nmD[0] = nm[0]; ownD[0] = own[0]; outD[0] = out[0];
#if JOBS == 2
  locD[1] = loc[1]; nmD[1] = nm[1]; ownD[1] = own[1]; outD[1] = out[1];
#endif
  partD[0] = part[0]; partD[1] = part[1]; partD[2] = part[2]
}

/* What the kernel does for a process that is gone. */
inline closeAll(w) {
  if
  :: fd[w] && !IS_OLD(w) && jlock[fd[w] - 1] == w + 1 -> jlock[fd[w] - 1] = 0
  :: else
  fi;
  if
  :: plock[pfd[w]] == w + 1 -> plock[pfd[w]] = 0
  :: else
  fi;
  fd[w] = 0; pfd[w] = 0; tfd[w] = 0; stale[w] = 0; forget(seen[w])
#if RENEWS
  ; old[w] = 0; forget(jrn[SPARE(w)]); forget(jrnD[SPARE(w)])
#endif
}

#if RENEWS
/* Claim.replaceFile: the job's text goes on in a file that nobody else has open. */
inline renew() {
  atomic { /* Claim.ownership; a copy in tmp/, made durable */
    if
    :: !OURS(w, j, n) -> goto notOurs
    :: else -> copy(jrn[SPARE(w)], jrn[j])
    fi
  }
  atomic { /* exchange */
    if
    :: !OURS(w, j, n) -> goto notOurs
    :: else ->
      if
      :: fd[1 - w] == j + 1 && !old[1 - w] -> old[1 - w] = 1; copy(jrn[SPARE(1 - w)], jrn[j])
      :: else
      fi;
      copy(jrn[j], jrn[SPARE(w)]); copy(jrnD[j], jrn[j]); forget(jrn[SPARE(w)]);
      jlock[j] = w + 1; stale[w] = 0
#if LATE
      ; isWritten = 0
#endif
    fi
  }
}
#endif

inline rename(j, dir, n, o) {
  assert(loc[j] != GONE);
  loc[j] = dir; nm[j] = n; own[j] = o
}

inline look(dir) {
  if
  :: !x && ANY(dir, n) -> x = 1
  :: !x && !ANY(dir, n)
  :: x
  fi
}

#if FREEZES
/* Claim.confirmAfterSilence */
#define CONFIRM(w) \
  if \
  :: expired[me[w]] && !OURS(w, j, n) -> goto notOurs \
  :: else \
  fi;
#else
#define CONFIRM(w)
#endif
#ifdef BUG_NAMESAKE
#define SHARES_LOCKS(w, o) true /* asks only for the host's name */
#else
#define SHARES_LOCKS(w, o) (ownerHost[o] == HOST(w)) /* host, boot id, process namespace and mount */
#endif
#ifdef BUG_LEASE_FORGOTTEN
#define MAY_TAKE(w, o) SHARES_LOCKS(w, o) /* and never looks again */
#else
#define MAY_TAKE(w, o) (SHARES_LOCKS(w, o) || expired[o])
#endif
#if FREEZES
#define MAY_LOCK(w, j) (!HELD(w, jlock[j]))
#else
#define MAY_LOCK(w, j) true
#endif
#ifdef BUG_LOCK_OUTLIVES_LEASE
#define OUTLIVES_LOCK(o) false
#else
#define OUTLIVES_LOCK(o) expired[o]
#endif

#if FREEZES
#define MAY_WAKE mayWake
#else
#define MAY_WAKE 0
#endif

#ifdef BUG_EMPTY_IN_PLACE
#define IS_MADE (length == 0)
#else
#define IS_MADE isMade
#endif

#ifdef DELIVERS
/* Attempt.deliver */
inline deliver() {
  if
  :: seen[w].receipt && from != NEW
  :: else ->
#ifndef BUG_DELIVER_UNRECORDED
    if
    :: WAITS(seen[w]) && from != NEW
    :: else ->
      CONFIRM(w)
      atomic { /* Attempt.deliver: published: */
        if
        :: STALE(w) -> goto broke
        :: else -> APPENDED(w, j); JOURNAL.waits = 1
        fi
      }
      d_step { copy(DURABLE_JOURNAL, JOURNAL) } /* Claim.makeDurable */
    fi;
#endif
    atomic { /* Hooks.run */
      assert(IS_OLD(w) || (out[j] && WHOLE(out[j]) && DURABLE(out[j])));
      hooked[j] = 1
    }
    if
    :: atomic { refusals -> refusals--; goto record }
    :: atomic { accepted[j] = 1 }
    :: !OURS(w, j, n) -> goto notOurs /* Attempt.tick */
    fi
  fi
}
#endif

proctype Worker(byte w) provided (AWAKE(w)) {
  byte j, n, from, name, owner, target, length, ver, mark, x;
  bool requeued, refused, rebuild, verifies, isMade;
#if FREEZES
  bool mayWake; /* the former owner: Claim.formerOwner */
#endif

life:
  {
    skip;
scan: /* Lookout.read; and of the claim Spool.take: its first looks, open */
    atomic { j = 0; n = 0; from = 0; name = 0; owner = 0; target = 0; length = 0; ver = 0; mark = 0; x = 0;
      requeued = 0; refused = 0; rebuild = 0; verifies = 0; isMade = 0; closeAll(w)
#if FREEZES
      ; mayWake = 0
#endif
    }
    atomic {
      if
      :: (loc[0] == NEW || loc[0] == PARTIAL) && MAY_LOCK(w, 0) -> j = 0
      :: loc[0] == CUR && MAY_TAKE(w, own[0]) && (MAY_LOCK(w, 0) || OUTLIVES_LOCK(own[0])) -> j = 0
#if JOBS == 2
      :: (loc[1] == NEW || loc[1] == PARTIAL) -> j = 1
      :: loc[1] == CUR && MAY_TAKE(w, own[1]) -> j = 1
#endif
      fi;
      from = loc[j]; name = nm[j]; owner = (from == CUR -> own[j] : 0);
#ifdef BUG_OWN_CLAIM
      /* The worker takes it for its own claim of another job. */
      if
      :: from == CUR && owner == me[w] -> j = 0; from = 0; name = 0; owner = 0; goto stuck
      :: else
      fi;
#endif
      x = (from == CUR -> expired[owner] : 0);
      fd[w] = j + 1
    }

    atomic { /* Spool.claim: flock */
      if
#if FREEZES
      :: HELD(w, jlock[j]) && !IS_OLD(w) && from == CUR && x -> mayWake = 1
      :: HELD(w, jlock[j]) && !IS_OLD(w) && !(from == CUR && x) -> goto scan
#else
      :: HELD(w, jlock[j]) -> goto scan
#endif
      :: else ->
        /* No owner loses its claim within its lease. */
        assert(from != CUR || owner == me[w] || x || IS_OLD(w) || !jlock[j]);
        if
        :: !IS_OLD(w) -> jlock[j] = w + 1
        :: else
        fi
      fi;
      x = 0
    }
    atomic { /* Spool.claim: fstat, Spool.judge */
      copy(seen[w], JOURNAL); stale[w] = 0; n = name
    }
    if
    :: from == NEW && seen[w].some ->
      atomic { /* Spool.noteArrival */
        APPENDED(w, j); requeued = 1;
        JOURNAL.vino = (JOURNAL.receipt || WAITS(JOURNAL) -> JOURNAL.vino : 0);
#ifdef BUG_REQUEUE_FORGETS
        JOURNAL.vino = 0; JOURNAL.receipt = 0
#endif
      }
    :: else
    fi;
    if
    :: from == NEW ->
      /* Spool.isTaken: one look at each directory, in the order in which a job moves, and in reverse */
      look(PARTIAL); look(FAILED); look(HOLD); look(CUR);
      look(HOLD); look(FAILED); look(PARTIAL);
      if
      :: x -> n = FREE_NAME; x = 0
      :: else
      fi
    :: else
    fi;
    if
    :: n == NONE -> goto scan
    :: else
    fi;
    atomic { /* Spool.claim: rename to a name of our own */
      x = FIND(from, name, owner);
      if
      :: x == NONE || (FIND(CUR, n, me[w]) != NONE && !(from == CUR && owner == me[w] && n == name)) -> goto scan
      :: else -> rename(x, CUR, n, me[w])
        ; expired[me[w]] = 0 /* its mtime is renewed before */
      fi
    }
    atomic { /* Spool.claim: confirm the inode */
      x = FIND(CUR, n, me[w]);
#ifdef BUG_NO_CONFIRM
      j = (x == NONE -> j : x);
      goto claimed;
#endif
      if
      :: x == j && !IS_OLD(w) -> goto claimed
      :: else
      fi
    }
    d_step { closeAll(w); j = x; x = 0 }
    atomic { /* Spool.claim, the name passed to another file meanwhile: open that */
      if
      :: j == NONE -> goto scan
      :: FIND(CUR, n, me[w]) == NONE -> goto scan
      :: else -> j = FIND(CUR, n, me[w]); fd[w] = j + 1
      fi
    }
    atomic { /* flock */
      if
      :: HELD(w, jlock[j]) -> x = 1
      :: else -> jlock[j] = w + 1
      fi
    }
    if
    :: x -> atomic { /* give it its name back */
        x = FIND(CUR, n, me[w]);
        if
        :: x == NONE -> goto scan
        :: x != NONE && FIND(from, name, owner) != NONE ->
          goto scan
        :: else -> rename(x, from, name, owner); goto scan
        fi
      }
    :: else
    fi;
    atomic { /* fstat, Spool.judge */
      copy(seen[w], JOURNAL); stale[w] = 0
    }
    atomic { /* requeued: by Attempt.begin, later in the code */
      if
      :: from == NEW && seen[w].some -> APPENDED(w, j); requeued = 1
#ifdef BUG_REQUEUE_FORGETS
        ; JOURNAL.vino = 0; JOURNAL.receipt = 0
#endif
      :: else
      fi;
      if
      :: FIND(CUR, n, me[w]) == j -> goto claimed
      :: else -> goto scan
      fi
    }

claimed: /* Attempt.takeToDone */
#if LATE && !defined(BUG_CLAIM_IN_PLACE)
    if
    :: from == NEW -> renew() /* a drop that its dropper may still write to */
    :: else
    fi;
#endif
#if FREEZES && !defined(BUG_OWNER_KEEPS_FILE)
    if
    :: mayWake -> renew() /* its former owner may still write to the file */
    :: else
    fi;
#endif
    atomic { from = (from == CUR -> CUR : (requeued -> NEW : 0)); name = 0; owner = 0; x = 0; requeued = 0 }
#if RENEWS
    if
    :: from == CUR && !seen[w].failed && !MAY_WAKE -> renew() /* Attempt.begin, Claim.renew */
    :: else
    fi;
#endif
    if
    :: from == CUR && seen[w].failed -> refused = seen[w].failed == 2; goto park /* Attempt.finishRecordedFailure */
    :: from != NEW && seen[w].vino -> /* Commit.finishInterrupted */
      atomic { /* OutputRoot.status */
        if
        :: out[j] == seen[w].vino -> goto directory
        :: else
        fi
      }
      atomic { /* PartFile.open */
        if
        :: !part[n] -> create(x); part[n] = x; pfd[w] = x; x = 0
        :: else -> pfd[w] = part[n]
        fi
      }
      atomic { /* flock, fstat */
        if
        :: HELD(w, plock[pfd[w]]) || part[n] != pfd[w] || PUBLISHED(pfd[w]) -> pfd[w] = 0
        :: else ->
          plock[pfd[w]] = w + 1;
          if
          :: pfd[w] == seen[w].vino && LENGTH(pfd[w]) == 2
          :: else -> plock[pfd[w]] = 0; pfd[w] = 0
          fi
        fi
      }
      if
      :: pfd[w] -> atomic { /* ChecksumReading.run: all of it */
          length = 2; ver = seen[w].ver;
#ifdef BUG_VERIFIED_INODE
          goto publish
#else
          if
          :: cell[2 * pfd[w]] == ver && cell[2 * pfd[w] + 1] == ver -> goto verified
          :: else
          fi
#endif
        }
        atomic { /* Attempt.fail, Claim.ownership */
          if
          :: OURS(w, j, n)
          :: else -> goto notOurs
          fi
        }
        CONFIRM(w)
        atomic { /* failed: of a mismatch */
          if
          :: STALE(w) -> goto broke
          :: else -> APPENDED(w, j); JOURNAL.failed = 1; JOURNAL.ver = 0; JOURNAL.ino = 0; JOURNAL.mark = 0; JOURNAL.soft = 0; JOURNAL.vino = 0
          fi
        }
        goto park
      :: else
      fi
    :: else
    fi;

    atomic { /* Commit.acceptExisting: status of the output, and of the data */
      if
      :: !out[j] -> goto openData
      :: else -> x = (part[n] == out[j] || ((seen[w].receipt || WAITS(seen[w])) && seen[w].vino == out[j]))
      fi;
      if
      :: x -> x = 0
      :: else -> goto outputExists
      fi
    }
    atomic { /* … read again, and fdatasync */
      cellD[2 * out[j]] = cell[2 * out[j]]; cellD[2 * out[j] + 1] = cell[2 * out[j] + 1]
    }
    CONFIRM(w)
    atomic { /* Claim.append verified: */
      if
      :: STALE(w) -> goto broke
      :: else -> APPENDED(w, j); JOURNAL.vino = out[j]; goto directory
      fi
    }

openData: /* DataRecovery.open, PartFile.open */
    atomic {
      if
      :: !part[n] -> create(x); part[n] = x; pfd[w] = x; x = 0; isMade = 1
      :: else -> pfd[w] = part[n]; isMade = 0
      fi
    }
    atomic { /* flock, fstat: one link */
      if
      :: HELD(w, plock[pfd[w]]) && !MAY_WAKE -> pfd[w] = 0
      :: else ->
        if
        :: part[n] != pfd[w] || PUBLISHED(pfd[w]) -> pfd[w] = 0
        :: else -> plock[pfd[w]] = (HELD(w, plock[pfd[w]]) -> plock[pfd[w]] : w + 1); length = LENGTH(pfd[w])
        fi
      fi
    }
    if
    :: !pfd[w] -> atomic { /* Claim.renumber */
        if
        :: !OURS(w, j, n) -> goto notOurs
        :: FREE_NAME == NONE -> goto broke
        :: else -> n = FREE_NAME; rename(j, CUR, n, me[w]); goto openData
        fi
      }
    :: else
    fi;

    atomic { /* Recovery.decide */
      x = (seen[w].host == HOST(w) && seen[w].boot == boot[HOST(w)] && !MAY_WAKE); /* isTrusted */
#ifdef BUG_TRUST_LENGTH
      x = 1;
#endif
      mark = (x && seen[w].soft <= length && seen[w].soft > seen[w].mark -> seen[w].soft : (seen[w].mark <= length -> seen[w].mark : 0));
      x = (x -> length : mark);
      if
      :: !length || !seen[w].ver || !seen[w].host || !x || seen[w].mark > length -> x = 0
      :: else ->
        if
        :: seen[w].ino != pfd[w] -> x = mark; verifies = mark > 0
        :: else
        fi
      fi;
#ifdef BUG_IN_PLACE
      rebuild = (x && seen[w].host != HOST(w));
#else
      /* Another host's worker may still write to it; or nothing says that it is ours. */
      rebuild = MAY_WAKE || (seen[w].host && seen[w].host != HOST(w)) || (!IS_MADE && (!seen[w].ver || seen[w].ino != pfd[w]));
#ifndef BUG_INODE_NUMBER
      /* What another host left: the number of the inode may be another file's by now. */
      verifies = verifies || (rebuild && x);
#endif
#endif
      ver = x; x = 0; isMade = 0 /* ver: the length for now */
    }
    if
    :: verifies -> atomic { /* ChecksumReading.run */
        verifies = 0;
        if
        :: cell[2 * pfd[w]] == seen[w].ver && (mark == 1 || cell[2 * pfd[w] + 1] == seen[w].ver)
        :: else -> ver = 0
        fi
      }
    :: else
    fi;
    if
    :: rebuild ->
      atomic { create(x); tfd[w] = x } /* PartCopy.run: create in tmp/ */
      atomic { /* copy, fdatasync */
        rebuild = 0;
        if
        :: LENGTH(pfd[w]) < ver -> goto broke
        :: else
        fi;
        cell[2 * x] = (ver > 0 -> cell[2 * pfd[w]] : 0); cell[2 * x + 1] = (ver > 1 -> cell[2 * pfd[w] + 1] : 0);
        cellD[2 * x] = cell[2 * x]; cellD[2 * x + 1] = cell[2 * x + 1]
      }
      atomic { /* rename over the old one */
        part[n] = x;
        if
        :: plock[pfd[w]] == w + 1 -> plock[pfd[w]] = 0
        :: else
        fi;
        pfd[w] = x; plock[x] = w + 1; tfd[w] = 0; x = 0; length = ver
      }
    :: !rebuild && length > ver -> atomic { cut(pfd[w], ver); length = ver } /* PartFile.truncate */
    :: else
    fi;
    d_step { length = ver; ver = (length -> seen[w].ver : 0); mark = seen[w].mark }
    if
    :: ver && seen[w].ino != pfd[w] -> CONFIRM(w) atomic { /* PartData.begin: response: */
        if
        :: STALE(w) -> goto broke
        :: else -> APPENDED(w, j); JOURNAL.ver = ver; JOURNAL.ino = pfd[w]
        fi
      }
    :: else
    fi;
    CONFIRM(w)
    atomic { /* Download.begin: started: */
      if
      :: STALE(w) -> goto broke
      :: else -> APPENDED(w, j); JOURNAL.host = HOST(w); JOURNAL.boot = boot[HOST(w)]; JOURNAL.vino = 0; JOURNAL.receipt = 0
        SET_WAITS(JOURNAL, 0)
      fi
    }

request: /* MirrorFetch.askOnce, ResponseVerdict.judge: 206 appends, 200 replaces */
    if
    :: length == 2 && ver -> goto verified
    :: atomic { !(length == 2 && ver) && ver && ver == VERSION(j) -> x = ver }
    :: atomic { !(length == 2 && ver) && !(ver && ver == VERSION(j)) -> x = VERSION(j); ver = 0 }
    fi;
    if
    :: !ver && length -> atomic { cut(pfd[w], 0); length = 0 } /* PartData.discardData */
    :: else
    fi;
    CONFIRM(w)
    atomic { /* PartData.begin: response: */
      if
      :: STALE(w) -> goto broke
      :: else -> APPENDED(w, j); JOURNAL.ver = x; JOURNAL.ino = pfd[w]; ver = x; x = 0;
        if
        :: !length -> JOURNAL.mark = 0; JOURNAL.soft = 0
        :: else
        fi
      fi
    }
    if
    :: !length && mark -> d_step { copy(DURABLE_JOURNAL, JOURNAL); mark = 0 } /* … made durable */
    :: else
    fi;
    do
    :: length < 2 -> CONFIRM(w) atomic { /* PartSink.append */
#ifdef DELIVERS
        assert(ON_TWO_HOSTS || !hooked[j]); /* what the hook has seen is not fetched again */
#endif
        put(pfd[w], length, ver); length++
      }
    :: length == 2 -> goto verified
    :: length && length > mark -> /* Checkpointer.beginIfDue */
      d_step { cellD[2 * pfd[w]] = cell[2 * pfd[w]]; cellD[2 * pfd[w] + 1] = cell[2 * pfd[w] + 1] } /* fdatasync */
      CONFIRM(w)
      atomic { /* PartData.noteCheckpoint */
        if
        :: STALE(w) -> goto broke
        :: else -> APPENDED(w, j); JOURNAL.mark = length; JOURNAL.soft = length; mark = length
        fi
      }
      d_step { copy(DURABLE_JOURNAL, JOURNAL) } /* Claim.makeDurable */
    :: !OURS(w, j, n) -> goto notOurs /* Attempt.tick, Claim.ownership */
#if FREEZES
    :: atomic { OURS(w, j, n) && expired[me[w]] -> expired[me[w]] = 0 } /* Attempt.tick, Claim.heartbeat */
#endif
    :: atomic { VERSION(j) != ver -> goto request } /* the connection was cut, and the file has changed */
    :: atomic { failures -> failures--; goto record }
    od;

verified: /* Commit.publish */
#ifndef BUG_NO_DATA_SYNC
    atomic { cellD[2 * pfd[w]] = cell[2 * pfd[w]]; cellD[2 * pfd[w] + 1] = cell[2 * pfd[w] + 1] } /* fdatasync */
#endif
    CONFIRM(w)
    atomic { /* Claim.append verified: */
      if
      :: STALE(w) -> goto broke
      :: else -> APPENDED(w, j); JOURNAL.vino = pfd[w]
      fi
    }
publish:
    atomic { /* Claim.holdsLock */
      if
      :: !IS_OLD(w) && HELD(w, jlock[j]) -> goto notOurs
      :: !IS_OLD(w) && !HELD(w, jlock[j]) -> jlock[j] = w + 1
      :: IS_OLD(w)
      fi
    }
    atomic { /* Claim.ownership */
      if
      :: OURS(w, j, n)
      :: else -> goto notOurs
      fi
    }
    atomic { /* OutputPlace.publish: linkat of the inode */
      x = pfd[w];
#ifdef BUG_PUBLISH_BY_NAME
      x = part[n];
#endif
      if
#ifdef BUG_PUBLISH_REPLACES
      :: x && out[j] && out[j] != x -> assert(false) /* invariant 2: a file was replaced */
#endif
      :: out[j] && out[j] == x -> x = 0
      :: out[j] && out[j] != x -> x = 0; goto outputExists
      :: !out[j] && (!x || (part[0] != x && part[1] != x && part[2] != x)) -> x = 0; goto record /* no name is left: ENOENT */
      :: !out[j] && x && !(part[0] != x && part[1] != x && part[2] != x) ->
        assert(WHOLE(x));    /* invariants 2, 5, 8 */
        assert(DURABLE(x));
#if JOBS == 2
        assert(cell[2 * x] == VERSION(j));
#endif
        out[j] = x; x = 0
      fi
    }

directory: /* Commit.sync */
#ifdef BUG_PART_FIRST
    atomic { part[n] = 0 }
#endif
#ifndef BUG_NO_DIRECTORY_SYNC
#ifdef UNORDERED
    atomic { outD[j] = out[j] }
#else
    atomic { syncNames() }
#endif
#endif
#if defined(DELIVERS) && !defined(BUG_DELIVER_LATE)
    deliver();
#endif
    CONFIRM(w)
    atomic { /* Commit.finish: done: */
      if
      :: seen[w].receipt && from != NEW
      :: else ->
        if
        :: STALE(w) -> goto broke
        :: else -> APPENDED(w, j); JOURNAL.receipt = 1
          SET_WAITS(JOURNAL, 0)
        fi
      fi
    }
    d_step { copy(DURABLE_JOURNAL, JOURNAL) } /* Claim.makeDurable */
    atomic { /* PartFile.remove, Spool.removeData */
      if
      :: pfd[w] && part[n] == pfd[w] -> part[n] = 0
      :: !pfd[w] && !(part[n] && HELD(w, plock[part[n]])) -> part[n] = 0
      :: else
      fi
    }
#if defined(DELIVERS) && defined(BUG_DELIVER_LATE)
    deliver();
#endif
    target = DONE;
    goto move;

outputExists:
    atomic { x = 0; refused = 1 }

record: /* Attempt.fail */
    atomic { /* Claim.ownership */
      if
      :: OURS(w, j, n)
      :: else -> goto notOurs
      fi
    }
    CONFIRM(w)
    atomic { /* failed: */
      if
      :: STALE(w) -> goto broke
      :: else -> APPENDED(w, j); JOURNAL.failed = 1 + refused; JOURNAL.soft = (pfd[w] && length -> length : JOURNAL.soft)
      fi
    }
park:
    target = (refused -> FAILED : PARTIAL);
    /* Attempt.closeData */
    if
    :: pfd[w] && !length -> atomic { /* PartFile.remove: isInPlace */
        if
        :: part[n] == pfd[w] -> x = 1
        :: else
        fi
      }
      if
      :: x -> d_step { part[n] = 0; x = 0 }
      :: else
      fi
    :: else
    fi;
    d_step {
      if
      :: plock[pfd[w]] == w + 1 -> plock[pfd[w]] = 0
      :: else
      fi;
      pfd[w] = 0
    }

move: /* Claim.move, Spool.moveNumbered: renameat2 without replacing */
    atomic {
      if
      :: !OURS(w, j, n) -> x = NONE
      :: OURS(w, j, n) && !ANY(target, n) ->
        if
        :: target == DONE ->
          assert(out[j] && (out[j] == outD[j] || ON_TWO_HOSTS)); /* invariant 3 */
          assert(WHOLE(out[j]) && DURABLE(out[j]));
          assert(DURABLE_JOURNAL.receipt)
#ifdef DELIVERS
          ; assert(accepted[j]) /* at least once */
#endif
        :: target == FAILED -> assert(!KNOWS_ITS_OWN || out[j] == STRANGER) /* a job's own payload is not taken for a stranger's */
#ifdef DELIVERS
          ; assert(ON_TWO_HOSTS || !hooked[j]) /* nor one that the hook has seen */
#endif
        :: else
        fi;
        rename(j, target, n, 0); goto scan
      :: OURS(w, j, n) && ANY(target, n) -> x = FREE_NAME
      fi
    }
    if
    :: x == NONE -> goto notOurs
    :: else ->
      atomic { /* Spool.moveData */
        if
        :: part[n] && !part[x] -> part[x] = part[n]; part[n] = 0
        :: else
        fi
      }
      atomic {
        if
        :: !OURS(w, j, n) -> goto notOurs
        :: OURS(w, j, n) && !ANY(target, x) -> rename(j, target, x, 0); goto scan
        :: OURS(w, j, n) && ANY(target, x) -> goto broke
        fi
      }
    fi;

notOurs: /* Attempt.end */
    if
    :: loc[j] == GONE -> /* Ending.remove */
      if
      :: pfd[w] -> atomic { /* PartFile.remove */
          if
          :: part[n] == pfd[w] -> x = 1
          :: else -> x = 0
          fi
        }
        if
        :: x == 1 -> d_step { part[n] = 0; x = 0 }
        :: else
        fi
      :: else
      fi
    :: OURS(w, j, n)
    :: loc[j] != GONE && !OURS(w, j, n) -> /* Ending.letGo */
      atomic {
        if
        :: pfd[w] && !STALE(w) && loc[j] != CUR -> APPENDED(w, j); JOURNAL.soft = length
        :: else
        fi
      }
    fi;
    goto scan;

broke: /* Claimer.noteBroken: the worker drops the job; the claim stays for whoever scans next */
    goto scan;

stuck: /* never taken again by this process */
    loc[0] == NONE
  } unless {
    atomic {
      killed[w];
      closeAll(w);
      killed[w] = 0;
      expired[me[w]] = 1;
      me[w] = owners; ownerHost[me[w]] = HOST(w); owners++
#if FREEZES
      ; frozen[w] = 0
#endif
    }
  };
  goto life
}

/* mv, rm and spoolrun cancel. */
proctype Person() {
  byte j, n, x;
life:
  {
    do
    :: atomic { gestures -> gestures--; x = 0; n = 0; j = 0;
#if JOBS == 2
        if
        :: j = 0
        :: j = 1
        fi;
#endif
        if
        :: (loc[j] == NEW || loc[j] == CUR || loc[j] == PARTIAL) && !ANY(HOLD, nm[j]) -> rename(j, HOLD, nm[j], 0)
        :: loc[j] == HOLD && !ANY(NEW, nm[j]) -> rename(j, NEW, nm[j], 0)
        :: loc[j] == FAILED && !ANY(NEW, nm[j]) -> rename(j, NEW, nm[j], 0)
        :: loc[j] != TMP && loc[j] != GONE && loc[j] != DONE -> n = nm[j]; loc[j] = GONE; x = 1 /* Gesture: unlink */
        :: else
        fi
      }
      if
      :: x -> x = 0; /* Spool.removeOrphanedData */
        atomic { fdP = part[n] } /* open */
        if
        :: fdP ->
          atomic { /* flock */
            if
            :: plock[fdP] -> x = 1
            :: else -> plock[fdP] = PERSON
            fi
          }
          /* JobSearch.absent: new, cur, partial, hold, failed, and in reverse */
          if
          :: !x ->
            if
            :: ANY(NEW, n) -> x = 1
            :: else
            fi;
            if
            :: ANY(CUR, n) -> x = 1
            :: else
            fi;
            if
            :: ANY(PARTIAL, n) -> x = 1
            :: else
            fi;
            if
            :: ANY(HOLD, n) || ANY(FAILED, n) -> x = 1
            :: else
            fi;
            if
            :: ANY(PARTIAL, n) -> x = 1
            :: else
            fi;
            if
            :: ANY(CUR, n) -> x = 1
            :: else
            fi;
            if
            :: ANY(NEW, n) -> x = 1
            :: else
            fi
          :: else
          fi;
          if
          :: !x && part[n] == fdP -> d_step { part[n] = 0 } /* unlink */
          :: else
          fi;
          d_step {
            x = 0;
            if
            :: plock[fdP] == PERSON -> plock[fdP] = 0
            :: else
            fi;
            fdP = 0
          }
        :: else
        fi
      :: else
      fi
    od
  } unless {
    atomic {
      killedP; killedP = 0; x = 0; n = 0; j = 0;
      if
      :: plock[fdP] == PERSON -> plock[fdP] = 0
      :: else
      fi;
      fdP = 0
    }
  };
  goto life
}

/* What a power cut leaves of a block: what was flushed, what was written back, or a length without data. */
inline settle(i) {
  if
  :: cell[2 * (i)] = cellD[2 * (i)]
  :: cell[2 * (i)] && !cellD[2 * (i)] -> cell[2 * (i)] = ZEROS
  :: skip
  fi;
  if
  :: cell[2 * (i) + 1] = cellD[2 * (i) + 1]
  :: cell[2 * (i) + 1] && !cellD[2 * (i) + 1] -> cell[2 * (i) + 1] = ZEROS
  :: skip
  fi;
  if
  :: cell[2 * (i) + 1] && !cell[2 * (i)] -> cell[2 * (i)] = ZEROS
  :: else
  fi;
  cellD[2 * (i)] = cell[2 * (i)]; cellD[2 * (i) + 1] = cell[2 * (i) + 1]
}

#define PROMISED(j) (loc[j] != DONE || (out[j] && WHOLE(out[j])))

proctype World() {
  byte k;
  do
  :: atomic { crashes && !killed[0] && fd[0] -> crashes--; killed[0] = 1 }
  :: atomic { crashes && !killed[1] && fd[1] -> crashes--; killed[1] = 1 }
#if VERSIONS
  :: atomic { versions -> versions--; remote = 3 - remote }
#endif
#if STRANGERS
  :: atomic { strangers && !out[0] -> strangers--; out[0] = STRANGER }
#endif
#if JOBS == 2
  :: atomic { loc[1] == TMP && !ANY(NEW, 0) -> loc[1] = NEW; locD[1] = NEW }
#endif
#if LATE
  :: atomic { isWritten && loc[0] != TMP -> isWritten = 0; assert(!jrn[0].some) /* a journal is written over */ }
#endif
#if FREEZES
  /* SIGSTOP, or a host that stands still: no heartbeat comes, so its lease ends. It may wake up before or after. */
  :: atomic { freezes && fd[0] && loc[fd[0] - 1] == CUR && own[fd[0] - 1] == me[0] -> freezes--; frozen[0] = 1 }
  :: atomic { frozen[0] && !expired[me[0]] -> expired[me[0]] = 1 }
  :: atomic { frozen[0] == 1 -> frozen[0] = 0 }
  :: atomic { frozen[0] == 1 -> frozen[0] = 2 }
#endif
#ifdef SHARED
#if LAPSES
  :: atomic { /* asleep for longer than the lease: its locks may be gone as well */
      lapses && fd[0] -> lapses--; expired[me[0]] = 1;
      if
      :: jlock[fd[0] - 1] == 1 -> jlock[fd[0] - 1] = 0
      :: else
      fi;
      if
      :: plock[pfd[0]] == 1 -> plock[pfd[0]] = 0
      :: else
      fi
    }
#endif
#if CUTS
  :: atomic { /* a host's power is cut: what its worker has not flushed is dropped */
      cuts && !killed[0] && fd[0] -> cuts--; killed[0] = 1; boot[1]++;
      if
      :: pfd[0] -> settle(pfd[0])
      :: else
      fi;
      if
      :: jlock[fd[0] - 1] == 1 -> copy(jrn[fd[0] - 1], jrnD[fd[0] - 1]); stale[1] = 1
      :: skip
      fi
    }
#endif
#else
#if CUTS
  /* The kernel writes back when it likes. */
  :: d_step { cuts && !killed[0] && !killed[1] -> copy(jrnD[0], jrn[0]) }
#ifdef UNORDERED
  :: d_step { cuts -> locD[0] = loc[0]; nmD[0] = nm[0]; ownD[0] = own[0] }
  :: d_step { cuts -> partD[0] = part[0] }
  :: d_step { cuts -> outD[0] = out[0] }
#else
  :: d_step { cuts -> syncNames() }
#endif
  :: atomic { /* the machine's power is cut */
      cuts && !killed[0] && !killed[1] -> cuts--; killed[0] = 1; killed[1] = 1; killedP = 1; boot[1]++;
      loc[0] = locD[0]; nm[0] = nmD[0]; own[0] = ownD[0]; out[0] = outD[0];
      copy(jrn[0], jrnD[0]);
#if JOBS == 2
      loc[1] = locD[1]; nm[1] = nmD[1]; own[1] = ownD[1]; out[1] = outD[1];
      copy(jrn[1], jrnD[1]);
#endif
      part[0] = partD[0]; part[1] = partD[1]; part[2] = partD[2];
      settle(1); settle(2); settle(3); k = 0;
      assert(PROMISED(0) && PROMISED(JOBS - 1))
    }
#endif
#endif
  /* Nothing can move any more: no job is left behind (invariant 1). */
  :: timeout ->
    assert(loc[0] >= FAILED || loc[0] == TMP);
    assert(loc[JOBS - 1] >= FAILED || loc[JOBS - 1] == TMP);
    break
  od
}

init {
  d_step {
    loc[0] = NEW; locD[0] = NEW; boot[1] = 1; boot[2] = 1;
    me[0] = 0; me[1] = 1; owners = 2; ownerHost[0] = HOST(0); ownerHost[1] = HOST(1);
    cell[12] = 3; cell[13] = 3
  }
  atomic { run Worker(0); run Worker(1); run Person(); run World() }
}
